//! The sections that say through whom mail is sent.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::graph::is_address;

/// A reservation is open for an hour at most, and a little longer than its send.
const LONGEST_TIMEOUT_S: u64 = 3590;
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);
const SENDGRID: &str = "smtp.sendgrid.net";

/// Through whom mail is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum Provider {
    /// Microsoft Graph, under the mailbox's budget.
    #[default]
    MicrosoftGraph,
    /// `SendGrid`, which has limits of its own.
    SendGrid,
}

impl TryFrom<String> for Provider {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.as_str() {
            "microsoft-graph" => Ok(Self::MicrosoftGraph),
            "sendgrid" => Ok(Self::SendGrid),
            _ => Err("no such provider: write \"microsoft-graph\" or \"sendgrid\""),
        }
    }
}

/// An app that sends through Microsoft Graph: `[graph]`, or a tenant's section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Graph {
    /// The tenant's id or one of its domains.
    pub tenant: Option<String>,
    /// The app registration.
    pub client_id: Option<String>,
    /// A file that holds the app's client secret.
    pub client_secret_file: Option<PathBuf>,
    /// An environment variable that holds it; where that is set, it goes before the file.
    pub client_secret_env: Option<String>,
    /// Where tokens come from.
    pub login_url: Option<String>,
    /// Where mail goes to.
    pub graph_url: Option<String>,
    /// How long one send may take in all, in seconds.
    pub timeout_s: Option<u64>,
}

impl Graph {
    /// How long one send may take in all.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        timeout(self.timeout_s)
    }
}

/// An account at `SendGrid`: `[sendgrid]`, or a tenant's section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SendGrid {
    /// A file that holds the API key.
    pub api_key_file: Option<PathBuf>,
    /// An environment variable that holds it; where that is set, it goes before the file.
    pub api_key_env: Option<String>,
    /// The SMTP server.
    pub host: Option<String>,
    /// Its port.
    pub port: Option<u16>,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// How long one send may take in all, in seconds.
    pub timeout_s: Option<u64>,
}

impl SendGrid {
    /// The SMTP server.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or(SENDGRID)
    }

    /// Its port: what is usual for the encryption, unless told otherwise.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            Tls::Implicit => 465,
            Tls::StartTls => 587,
            Tls::None => 25,
        })
    }

    /// How long one send may take in all.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        timeout(self.timeout_s)
    }
}

/// How an SMTP connection is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum Tls {
    /// From its first byte on.
    #[default]
    Implicit,
    /// Before anything is said on it that matters, else it is given up.
    StartTls,
    /// Not at all: only to this machine itself.
    None,
}

impl TryFrom<String> for Tls {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.as_str() {
            "implicit" => Ok(Self::Implicit),
            "starttls" => Ok(Self::StartTls),
            "none" => Ok(Self::None),
            _ => Err("no such encryption: write \"implicit\", \"starttls\" or \"none\""),
        }
    }
}

/// How a tenant's mail is sent: `[tenant.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TenantKeys")]
pub enum Tenant {
    /// Through Microsoft Graph.
    Graph(Graph),
    /// Through `SendGrid`.
    SendGrid(SendGrid),
}

/// All keys that a tenant's section can have. Serde's tagged enums would lose in which line a wrong
/// one stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantKeys {
    provider: Provider,
    tenant: Option<String>,
    client_id: Option<String>,
    client_secret_file: Option<PathBuf>,
    client_secret_env: Option<String>,
    login_url: Option<String>,
    graph_url: Option<String>,
    api_key_file: Option<PathBuf>,
    api_key_env: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    tls: Option<Tls>,
    timeout_s: Option<u64>,
}

impl TryFrom<TenantKeys> for Tenant {
    type Error = String;

    fn try_from(keys: TenantKeys) -> Result<Self, String> {
        let of_graph = [
            ("tenant", keys.tenant.is_some()),
            ("client_id", keys.client_id.is_some()),
            ("client_secret_file", keys.client_secret_file.is_some()),
            ("client_secret_env", keys.client_secret_env.is_some()),
            ("login_url", keys.login_url.is_some()),
            ("graph_url", keys.graph_url.is_some()),
        ];
        let of_sendgrid = [
            ("api_key_file", keys.api_key_file.is_some()),
            ("api_key_env", keys.api_key_env.is_some()),
            ("host", keys.host.is_some()),
            ("port", keys.port.is_some()),
            ("tls", keys.tls.is_some()),
        ];
        match keys.provider {
            Provider::MicrosoftGraph => {
                none_of(&of_sendgrid, "sendgrid")?;
                for (key, is_set) in &of_graph[..2] {
                    if !is_set {
                        return Err(format!("no {key}: set it, a tenant has no default"));
                    }
                }
                let graph = Graph {
                    tenant: keys.tenant,
                    client_id: keys.client_id,
                    client_secret_file: keys.client_secret_file,
                    client_secret_env: keys.client_secret_env,
                    login_url: keys.login_url,
                    graph_url: keys.graph_url,
                    timeout_s: keys.timeout_s,
                };
                if graph.client_secret_file.is_none() && graph.client_secret_env.is_none() {
                    return Err("no client secret: set client_secret_file or client_secret_env".into());
                }
                graph.check()?;
                Ok(Self::Graph(graph))
            }
            Provider::SendGrid => {
                none_of(&of_graph, "microsoft-graph")?;
                let sendgrid = SendGrid {
                    api_key_file: keys.api_key_file,
                    api_key_env: keys.api_key_env,
                    host: keys.host,
                    port: keys.port,
                    tls: keys.tls.unwrap_or_default(),
                    timeout_s: keys.timeout_s,
                };
                if sendgrid.api_key_file.is_none() && sendgrid.api_key_env.is_none() {
                    return Err("no API key: set api_key_file or api_key_env".into());
                }
                sendgrid.check()?;
                Ok(Self::SendGrid(sendgrid))
            }
        }
    }
}

fn none_of(keys: &[(&str, bool)], provider: &str) -> Result<(), String> {
    match keys.iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(format!(
            "{key} is a key of the provider {provider}: leave it out here"
        )),
        None => Ok(()),
    }
}

/// What must hold between the keys of a section.
pub(super) trait Check {
    /// What does not, without any value.
    fn check(&self) -> Result<(), String>;
}

impl Check for Graph {
    fn check(&self) -> Result<(), String> {
        check_timeout(self.timeout_s)?;
        for (key, url) in [("login_url", &self.login_url), ("graph_url", &self.graph_url)] {
            if url.as_deref().is_some_and(|url| !is_address(url)) {
                return Err(format!("{key} must be an http or https address without a query"));
            }
        }
        Ok(())
    }
}

impl Check for SendGrid {
    fn check(&self) -> Result<(), String> {
        check_timeout(self.timeout_s)?;
        if self.tls == Tls::None && !is_this_machine(self.host()) {
            return Err(
                "tls = \"none\" would show the API key to the network: use \"implicit\" or \"starttls\", \
                        or set host to localhost or a loopback address"
                    .into(),
            );
        }
        Ok(())
    }
}

impl Check for super::MailboxConfig {
    fn check(&self) -> Result<(), String> {
        let is_limited = self.rate_limit_per_minute.is_some() || self.rate_limit_recipients_per_day.is_some();
        if self.provider == Provider::SendGrid && is_limited {
            return Err("sendgrid has limits of its own: leave rate_limit_per_minute and \
                        rate_limit_recipients_per_day out"
                .into());
        }
        Ok(())
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn check_timeout(timeout_s: Option<u64>) -> Result<(), String> {
    match timeout_s {
        Some(timeout_s) if !(1..=LONGEST_TIMEOUT_S).contains(&timeout_s) => Err(format!(
            "a timeout of {timeout_s} s is not possible: set timeout_s to 1 to {LONGEST_TIMEOUT_S}"
        )),
        _ => Ok(()),
    }
}

fn timeout(timeout_s: Option<u64>) -> Duration {
    timeout_s.map_or(USUAL_TIMEOUT, Duration::from_secs)
}

/// A path that is meant from where the file is, not from where the command runs.
fn from(directory: &Path, path: &mut Option<PathBuf>) {
    if let Some(path) = path {
        *path = directory.join(&*path);
    }
}

impl Graph {
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        from(directory, &mut self.client_secret_file);
    }
}

impl SendGrid {
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        from(directory, &mut self.api_key_file);
    }
}

impl Tenant {
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        match self {
            Self::Graph(graph) => graph.resolve_paths(directory),
            Self::SendGrid(sendgrid) => sendgrid.resolve_paths(directory),
        }
    }
}
