//! The options of a Graph mailer.

use std::time::Duration;

use reqwest::{Client, Url, redirect, retry};

use super::mailer::MicrosoftGraphMailer;
use super::secret::Secret;
use super::token::{Credentials, TokenSource};

const GLOBAL_LOGIN: &str = "https://login.microsoftonline.com";
const GLOBAL_GRAPH: &str = "https://graph.microsoft.com";
/// "National cloud deployments": US Government L4 and L5 (DOD), China operated by 21Vianet.
const NATIONAL_GRAPHS: [&str; 3] = [
    "graph.microsoft.us",
    "dod-graph.microsoft.us",
    "microsoftgraph.chinacloudapi.cn",
];
const LONGEST_TIMEOUT: Duration = Duration::from_hours(1);
/// Shorter than any server keeps an idle connection: a mail that is written just as the server
/// hangs up may or may not have been sent.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// Makes a [`MicrosoftGraphMailer`].
///
/// For a national cloud, set [`login_url`](Self::login_url) and [`graph_url`](Self::graph_url) as
/// Microsoft's page "National cloud deployments" lists them.
#[derive(Debug, Clone)]
#[must_use]
pub struct MicrosoftGraphMailerBuilder {
    tenant: String,
    client_id: String,
    client_secret: Secret,
    login_url: String,
    graph_url: String,
    scope: Option<String>,
    timeout: Duration,
    proxy: bool,
}

/// Options that make no mailer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphConfigError {
    /// One of these is empty.
    #[error("the {0} is empty. Please set it")]
    Empty(&'static str),
    /// An address that is none.
    #[error("{option} must be an http or https address without a query, not {value:?}")]
    Address {
        /// Which one.
        option: &'static str,
        /// What it was set to.
        value: String,
    },
    /// The timeout is zero or over an hour.
    #[error("the timeout must be over 0 and at most 1 hour, not {0:?}")]
    Timeout(Duration),
    /// The HTTP client cannot be made, for TLS or a proxy setting say.
    #[error("the HTTP client cannot be made: {0}")]
    Http(#[source] reqwest::Error),
}

impl MicrosoftGraphMailerBuilder {
    pub(super) fn new(tenant: String, client_id: String, client_secret: Secret) -> Self {
        Self {
            tenant,
            client_id,
            client_secret,
            login_url: GLOBAL_LOGIN.into(),
            graph_url: GLOBAL_GRAPH.into(),
            scope: None,
            timeout: Duration::from_secs(30),
            proxy: true,
        }
    }

    /// Where tokens come from: `{login_url}/{tenant}/oauth2/v2.0/token`.
    /// (`https://login.microsoftonline.com`)
    pub fn login_url(mut self, url: impl Into<String>) -> Self {
        self.login_url = url.into();
        self
    }

    /// Where mail goes to: `{graph_url}/v1.0/users/{mailbox}/sendMail`.
    /// (`https://graph.microsoft.com`)
    pub fn graph_url(mut self, url: impl Into<String>) -> Self {
        self.graph_url = url.into();
        self
    }

    /// The scope that a token is asked for. (`/.default` of `graph_url` where that is one of
    /// Microsoft's national clouds, else `https://graph.microsoft.com/.default`)
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// How long one send may take in all, a token included: over 0, at most 1 hour. (30 s)
    ///
    /// A reservation's lease should be a little longer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connects directly, whatever the environment says of proxies.
    pub fn no_proxy(mut self) -> Self {
        self.proxy = false;
        self
    }

    /// Makes the mailer; it connects when it is first used.
    ///
    /// # Errors
    /// If an option is empty, no address or out of range, or the HTTP client cannot be made.
    pub fn build(self) -> Result<MicrosoftGraphMailer, GraphConfigError> {
        let given = [
            ("tenant", &*self.tenant),
            ("client id", &self.client_id),
            ("client secret", self.client_secret.expose()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, value)| value.trim().is_empty()) {
            return Err(GraphConfigError::Empty(name));
        }
        if self.timeout.is_zero() || self.timeout > LONGEST_TIMEOUT {
            return Err(GraphConfigError::Timeout(self.timeout));
        }
        let login_url = base("login_url", &self.login_url)?;
        let graph_url = base("graph_url", &self.graph_url)?;
        let client = self.client()?;
        let credentials = Credentials {
            endpoint: below(&login_url, &[&self.tenant, "oauth2", "v2.0", "token"]),
            client_id: self.client_id,
            client_secret: self.client_secret,
            scope: self.scope.unwrap_or_else(|| default_scope(&graph_url)),
        };
        let tokens = TokenSource::new(credentials, client.clone());
        Ok(MicrosoftGraphMailer::new(client, graph_url, tokens, self.timeout))
    }

    fn client(&self) -> Result<Client, GraphConfigError> {
        let mut builder = Client::builder()
            .user_agent(concat!("mailrl/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .pool_idle_timeout(IDLE_CONNECTION);
        if !self.proxy {
            builder = builder.no_proxy();
        }
        builder.build().map_err(GraphConfigError::Http)
    }
}

fn base(option: &'static str, value: &str) -> Result<Url, GraphConfigError> {
    parse(value).ok_or_else(|| GraphConfigError::Address {
        option,
        value: value.to_owned(),
    })
}

/// True if [`login_url`](MicrosoftGraphMailerBuilder::login_url) and
/// [`graph_url`](MicrosoftGraphMailerBuilder::graph_url) can be set to this.
pub(crate) fn is_address(value: &str) -> bool {
    parse(value).is_some()
}

fn parse(value: &str) -> Option<Url> {
    Url::parse(value.trim()).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none()
    })
}

/// The address of these path segments below a base, each percent-encoded.
pub(super) fn below(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    // Only an address without a host has no path, and `base` takes none.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

fn default_scope(graph_url: &Url) -> String {
    let host = graph_url.host_str().filter(|host| NATIONAL_GRAPHS.contains(host));
    host.map_or_else(
        || format!("{GLOBAL_GRAPH}/.default"),
        |host| format!("https://{host}/.default"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> MicrosoftGraphMailerBuilder {
        MicrosoftGraphMailerBuilder::new("tenant".into(), "client".into(), Secret::new("hunter2"))
    }

    #[test]
    fn a_mailbox_is_one_path_segment_whatever_is_in_it() {
        let base = Url::parse("http://host/graph/").unwrap();
        let url = below(
            &base,
            &["v1.0", "users", "a/b?c#d%e ü\\f+g@example.com", "sendMail"],
        );
        assert_eq!(
            url.as_str(),
            "http://host/graph/v1.0/users/a%2Fb%3Fc%23d%25e%20%C3%BC%5Cf+g@example.com/sendMail"
        );
    }

    #[test]
    fn national_clouds_have_a_scope_of_their_own_and_all_else_the_global_one() {
        let scope = |url| default_scope(&Url::parse(url).unwrap());
        assert_eq!(
            scope("https://graph.microsoft.us"),
            "https://graph.microsoft.us/.default"
        );
        assert_eq!(
            scope("https://graph.microsoft.com"),
            "https://graph.microsoft.com/.default"
        );
        assert_eq!(
            scope("http://127.0.0.1:8025"),
            "https://graph.microsoft.com/.default"
        );
    }

    #[test]
    fn wrong_options_are_named() {
        let error = |builder: MicrosoftGraphMailerBuilder| builder.build().unwrap_err().to_string();
        assert!(error(builder().graph_url("graph.microsoft.com")).contains("graph_url"));
        assert!(error(builder().login_url("ftp://login")).contains("login_url"));
        assert!(error(builder().login_url("https://login?x=1")).contains("login_url"));
        assert!(error(builder().timeout(Duration::ZERO)).contains("timeout"));
        assert!(error(builder().timeout(Duration::from_secs(3601))).contains("timeout"));
        let empty = MicrosoftGraphMailerBuilder::new(" ".into(), "client".into(), Secret::new("hunter2"));
        assert!(error(empty).contains("tenant"));
        let empty = MicrosoftGraphMailerBuilder::new("tenant".into(), "client".into(), Secret::new(""));
        assert!(error(empty).contains("client secret"));
    }

    #[test]
    fn debug_shows_no_secret() {
        let builder = builder();
        assert!(!format!("{builder:?}").contains("hunter2"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("hunter2"));
    }
}
