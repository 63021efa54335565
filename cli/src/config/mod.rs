//! What holds after flags, environment and file.

mod file;
mod queue;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mailrl_client::{Limits, MailRateLimiter, Mailbox, RateLimiterConfig};
use mailrl_mailer::{GraphConfigError, MicrosoftGraphMailer, Secret};

use crate::args;
use file::{File, FileError};

const DEFAULT_REDIS: &str = "redis://127.0.0.1:6379";
const SECRET_VARIABLE: &str = "MAILRL_CLIENT_SECRET";

/// How much longer than a send a reservation is open.
const LEASE_BEYOND_SEND: Duration = Duration::from_secs(10);
/// A lease is an hour at most.
const LONGEST_TIMEOUT_S: u64 = 3590;

/// What is configured.
pub struct Config {
    redis_url: String,
    deadline_ms: Option<u64>,
    graph: file::Graph,
    limits: file::Limits,
    mailboxes: BTreeMap<Mailbox, file::MailboxLimits>,
}

/// A configuration that cannot work, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: [mailbox.{second:?}] names the same mailbox as another section", path.display())]
    MailboxTwice { path: PathBuf, second: String },
    #[error(transparent)]
    Redis(#[from] mailrl_client::ConfigError),
    #[error("no {what}: set {key} in [graph] of the configuration file, {variable} or {flag}")]
    Missing {
        what: &'static str,
        key: &'static str,
        variable: &'static str,
        flag: &'static str,
    },
    #[error(
        "no client secret: set {SECRET_VARIABLE}, or name a file that holds it as client_secret_file in [graph] of \
         the configuration file, in MAILRL_CLIENT_SECRET_FILE or as --client-secret-file"
    )]
    NoSecret,
    #[error("the client secret cannot be read from {}: {error}", path.display())]
    Secret { path: PathBuf, error: std::io::Error },
    #[error("the file {} holds no client secret, it is empty", path.display())]
    EmptySecret { path: PathBuf },
    #[error("a timeout of {0} s is not possible: set timeout_s to 1 to {LONGEST_TIMEOUT_S}")]
    Timeout(u64),
    #[error(transparent)]
    Graph(#[from] GraphConfigError),
    #[error(
        "no store of mails: set MAILRL_STORE or --store to file:///folder, s3://bucket/prefix or az://container/prefix"
    )]
    NoStore,
    #[error("--id names one message: give one file with it")]
    IdOfMany,
    #[error("signals cannot be listened to: {0}")]
    Signals(#[source] std::io::Error),
}

impl Config {
    /// Reads the file, if there is one, and puts what was said elsewhere before it.
    pub fn load(place: &args::Place) -> Result<Self, ConfigError> {
        let path = place
            .config
            .clone()
            .filter(|path| is_set(path))
            .or_else(usual_place);
        let file = match &path {
            Some(path) => {
                tracing::debug!(path = %path.display(), "reading the configuration file");
                File::read(path)?
            }
            None => File::default(),
        };
        let mut mailboxes = BTreeMap::new();
        for (name, limits) in file.mailbox {
            if mailboxes.insert(Mailbox::new(&name), limits).is_some() {
                return Err(ConfigError::MailboxTwice {
                    path: path.unwrap_or_default(),
                    second: name,
                });
            }
        }
        let said = place.redis.clone().filter(|url| !url.is_empty());
        Ok(Self {
            redis_url: said
                .or(file.redis.url)
                .unwrap_or_else(|| DEFAULT_REDIS.to_owned()),
            deadline_ms: file.redis.deadline_ms,
            graph: file.graph,
            limits: file.limits,
            mailboxes,
        })
    }

    /// The address of Redis; it may hold a password.
    pub fn redis_url(&self) -> &str {
        &self.redis_url
    }

    /// The limiter, whose reservations outlast a send that takes this long.
    pub fn limiter(&self, send_timeout: Duration) -> Result<MailRateLimiter, ConfigError> {
        let mut config = RateLimiterConfig::new(&self.redis_url).lease(send_timeout + LEASE_BEYOND_SEND);
        if let Some(deadline_ms) = self.deadline_ms {
            config = config.deadline(Duration::from_millis(deadline_ms));
        }
        if let Some(concurrent) = self.limits.concurrent {
            config = config.concurrent(Some(concurrent));
        }
        Ok(MailRateLimiter::new(config)?)
    }

    /// What this mailbox is held to; the module's own limits where nothing is said.
    pub fn limits(&self, mailbox: &Mailbox) -> Limits {
        let own = self.mailboxes.get(mailbox);
        Limits {
            per_minute: own
                .and_then(|own| own.rate_limit_per_minute)
                .or(self.limits.rate_limit_per_minute),
            recipients_per_day: own
                .and_then(|own| own.rate_limit_recipients_per_day)
                .or(self.limits.rate_limit_recipients_per_day),
        }
    }

    /// The mailer.
    pub fn graph_mailer(&self, args: &args::Graph) -> Result<MicrosoftGraphMailer, ConfigError> {
        let file = &self.graph;
        let tenant = first(args.tenant.as_ref(), file.tenant.as_ref()).ok_or(ConfigError::Missing {
            what: "tenant",
            key: "tenant",
            variable: "MAILRL_TENANT",
            flag: "--tenant",
        })?;
        let client_id =
            first(args.client_id.as_ref(), file.client_id.as_ref()).ok_or(ConfigError::Missing {
                what: "client id",
                key: "client_id",
                variable: "MAILRL_CLIENT_ID",
                flag: "--client-id",
            })?;
        let mut builder = MicrosoftGraphMailer::builder(tenant, client_id, self.secret(args)?);
        if let Some(url) = first(args.login_url.as_ref(), file.login_url.as_ref()) {
            builder = builder.login_url(url);
        }
        if let Some(url) = first(args.graph_url.as_ref(), file.graph_url.as_ref()) {
            builder = builder.graph_url(url);
        }
        if let Some(timeout_s) = args.timeout_s.or(file.timeout_s) {
            if !(1..=LONGEST_TIMEOUT_S).contains(&timeout_s) {
                return Err(ConfigError::Timeout(timeout_s));
            }
            builder = builder.timeout(Duration::from_secs(timeout_s));
        }
        Ok(builder.build()?)
    }

    /// No flag holds the secret: what stands on a command line, every process of the machine sees.
    fn secret(&self, args: &args::Graph) -> Result<Secret, ConfigError> {
        if let Some(secret) = std::env::var(SECRET_VARIABLE)
            .ok()
            .filter(|secret| !secret.trim().is_empty())
        {
            return Ok(Secret::new(secret.trim()));
        }
        let said = args.client_secret_file.as_ref().filter(|path| is_set(path));
        let path = said
            .or(self.graph.client_secret_file.as_ref())
            .ok_or(ConfigError::NoSecret)?;
        read_secret(path)
    }
}

fn read_secret(path: &Path) -> Result<Secret, ConfigError> {
    let secret = std::fs::read_to_string(path).map_err(|error| ConfigError::Secret {
        path: path.to_owned(),
        error,
    })?;
    match secret.trim() {
        "" => Err(ConfigError::EmptySecret {
            path: path.to_owned(),
        }),
        secret => Ok(Secret::new(secret)),
    }
}

/// An empty variable is one that is not set: a deployment cannot always leave it out.
fn first<'a>(said: Option<&'a String>, in_file: Option<&'a String>) -> Option<&'a String> {
    said.filter(|value| !value.trim().is_empty()).or(in_file)
}

fn is_set(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

/// The first file that is there of those that are looked for unasked.
fn usual_place() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let user = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&variable("HOME")?).join(".config")));
    let places = [
        Some(PathBuf::from("mailrl.toml")),
        user.map(|directory| directory.join("mailrl/config.toml")),
    ];
    places.into_iter().flatten().find(|path| path.exists())
}
