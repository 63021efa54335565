//! What holds after flags, environment and file.

mod queue;

use std::path::{Path, PathBuf};

use mailrl_client::{Limits, MailRateLimiter, Mailbox};
use mailrl_mailer::config::{AccountError, FileError, Graph, MailConfig};
use mailrl_mailer::{GraphConfigError, MicrosoftGraphMailer};

use crate::args;

const SECRET_VARIABLE: &str = "MAILRL_CLIENT_SECRET";

/// What is configured.
pub struct Config {
    mail: MailConfig,
    source: Source,
}

/// Where it is configured; it can be read again and again.
#[derive(Clone)]
pub struct Source {
    /// Found once: a file that vanishes for a moment must not be taken for none.
    path: Option<PathBuf>,
    redis: Option<String>,
    graph: Option<args::Graph>,
}

impl Source {
    /// Reads the file, if there is one, and puts what was said elsewhere before it.
    pub fn read(&self) -> Result<MailConfig, FileError> {
        let mut mail = match &self.path {
            Some(path) => MailConfig::read(path)?,
            None => MailConfig::default(),
        };
        prefer(&mut mail.redis.url, self.redis.as_ref());
        if let Some(graph) = &self.graph {
            prefer_graph(&mut mail.graph, graph);
        }
        Ok(mail)
    }
}

/// A configuration that cannot work, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Redis(#[from] mailrl_client::ConfigError),
    #[error("no {what}: set {key} in [graph] of the configuration file, MAILRL_{} or --{}", key.to_uppercase(), key.replace('_', "-"))]
    Missing { what: &'static str, key: &'static str },
    #[error(
        "no client secret: set {SECRET_VARIABLE}, or name a file that holds it as client_secret_file in [graph] of \
         the configuration file, in MAILRL_CLIENT_SECRET_FILE or as --client-secret-file"
    )]
    NoSecret,
    #[error(transparent)]
    Account(AccountError),
    #[error(transparent)]
    Graph(#[from] GraphConfigError),
    #[error(
        "no store of mails: set url in [store] of the configuration file, MAILRL_STORE or --store to file:///folder, s3://bucket/prefix or az://container/prefix"
    )]
    NoStore,
    #[error("--id names one message: give one file with it")]
    IdOfMany,
    #[error("signals cannot be listened to: {0}")]
    Signals(#[source] std::io::Error),
}

impl From<AccountError> for ConfigError {
    /// What the file lacks, flags and variables can say too.
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Missing { what, key } => Self::Missing { what, key },
            AccountError::NoSecret { .. } => Self::NoSecret,
            error => Self::Account(error),
        }
    }
}

impl Config {
    /// Finds out where it is configured, and reads it.
    pub fn load(place: &args::Place) -> Result<Self, ConfigError> {
        let path = place
            .config
            .clone()
            .filter(|path| is_set(path))
            .or_else(usual_place);
        if let Some(path) = &path {
            tracing::debug!(path = %path.display(), "reading the configuration file");
        }
        let source = Source {
            path,
            redis: place.redis.clone(),
            graph: None,
        };
        Ok(Self {
            mail: source.read()?,
            source,
        })
    }

    /// Where it is configured.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The address of Redis; it may hold a password.
    pub fn redis_url(&self) -> &str {
        self.mail.redis.url()
    }

    /// The limiter, whose reservations outlast every send that is configured.
    pub fn limiter(&self) -> Result<MailRateLimiter, ConfigError> {
        Ok(MailRateLimiter::new(self.mail.rate_limiter())?)
    }

    /// What this mailbox is held to; the module's own limits where nothing is said.
    pub fn limits(&self, mailbox: &Mailbox) -> Limits {
        self.mail.limits_of(mailbox)
    }

    /// The mailer.
    pub fn graph_mailer(&self) -> Result<MicrosoftGraphMailer, ConfigError> {
        Ok(self.mail.graph.account()?.mailer()?)
    }

    /// Puts what was said of Microsoft Graph elsewhere before the file.
    pub fn prefer_graph(&mut self, args: args::Graph) {
        prefer_graph(&mut self.mail.graph, &args);
        self.source.graph = Some(args);
    }
}

fn prefer_graph(graph: &mut Graph, args: &args::Graph) {
    let Graph {
        tenant,
        client_id,
        client_secret_file,
        client_secret_env,
        login_url,
        graph_url,
        timeout_s,
    } = graph;
    prefer(tenant, args.tenant.as_ref());
    prefer(client_id, args.client_id.as_ref());
    prefer(login_url, args.login_url.as_ref());
    prefer(graph_url, args.graph_url.as_ref());
    *timeout_s = args.timeout_s.or(*timeout_s);
    // No flag holds the secret: what stands on a command line, every process of the machine sees.
    if let Some(path) = args.client_secret_file.as_ref().filter(|path| is_set(path)) {
        *client_secret_file = Some(path.clone());
        *client_secret_env = None;
    }
    if std::env::var(SECRET_VARIABLE).is_ok_and(|secret| !secret.trim().is_empty()) {
        *client_secret_env = Some(SECRET_VARIABLE.to_owned());
    }
}

/// An empty variable is one that is not set: a deployment cannot always leave it out.
fn prefer(value: &mut Option<String>, said: Option<&String>) {
    if let Some(said) = said.filter(|said| !said.trim().is_empty()) {
        *value = Some(said.clone());
    }
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
