//! An account with all that it takes to send: what a section says, with its secret read.

use std::path::PathBuf;
use std::time::Duration;

use super::provider::{Check, Graph, SendGrid, Tls};
use super::secret::SecretKeys;
use crate::graph::{GraphConfigError, MicrosoftGraphMailer, Secret};

/// An app that sends through Microsoft Graph, complete.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GraphAccount {
    tenant: String,
    client_id: String,
    client_secret: Secret,
    login_url: Option<String>,
    graph_url: Option<String>,
    timeout: Duration,
}

impl GraphAccount {
    /// A mailer with connections and a token of its own; it connects when it is first used.
    pub fn mailer(&self) -> Result<MicrosoftGraphMailer, GraphConfigError> {
        let mut builder =
            MicrosoftGraphMailer::builder(&*self.tenant, &*self.client_id, self.client_secret.clone())
                .timeout(self.timeout);
        if let Some(url) = &self.login_url {
            builder = builder.login_url(url);
        }
        if let Some(url) = &self.graph_url {
            builder = builder.graph_url(url);
        }
        builder.build()
    }
}

/// An account at `SendGrid`, complete.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SendGridAccount {
    pub(crate) api_key: Secret,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: Tls,
    pub(crate) timeout: Duration,
}

/// A section that makes no account as things are, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// A key is not set.
    #[error("no {what}: set {key}")]
    Missing {
        /// What is missing, in words.
        what: &'static str,
        /// The key that would say it.
        key: &'static str,
    },
    /// Nothing says where the secret is.
    #[error(
        "no {what}: name a file that holds it as {key}_file, or an environment variable that does as {key}_env"
    )]
    NoSecret {
        /// What kind of secret.
        what: &'static str,
        /// What its keys begin with.
        key: &'static str,
    },
    /// The environment variable that should hold the secret does not.
    #[error("no {what}: the environment variable that {key}_env names is not set. Set it, or use {key}_file")]
    VariableNotSet {
        /// What kind of secret.
        what: &'static str,
        /// What its keys begin with.
        key: &'static str,
    },
    /// The file that should hold the secret cannot be read.
    #[error("the {what} cannot be read from {}: {error}", path.display())]
    SecretUnreadable {
        /// What kind of secret.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// The file that should hold the secret is empty.
    #[error("the file {} holds no {what}, it is empty", path.display())]
    SecretEmpty {
        /// What kind of secret.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A value is out of range.
    #[error("{0}")]
    Invalid(String),
}

impl Graph {
    /// The account, with its secret as it stands in its place now.
    pub fn account(&self) -> Result<GraphAccount, AccountError> {
        self.check().map_err(AccountError::Invalid)?;
        let secret = SecretKeys {
            what: "client secret",
            key: "client_secret",
            variable: self.client_secret_env.as_deref(),
            file: self.client_secret_file.as_ref(),
        };
        Ok(GraphAccount {
            tenant: set(self.tenant.as_ref(), "tenant", "tenant")?,
            client_id: set(self.client_id.as_ref(), "client id", "client_id")?,
            client_secret: secret.read()?,
            login_url: self.login_url.clone(),
            graph_url: self.graph_url.clone(),
            timeout: self.timeout(),
        })
    }
}

impl SendGrid {
    /// The account, with its API key as it stands in its place now.
    pub fn account(&self) -> Result<SendGridAccount, AccountError> {
        self.check().map_err(AccountError::Invalid)?;
        let api_key = SecretKeys {
            what: "API key",
            key: "api_key",
            variable: self.api_key_env.as_deref(),
            file: self.api_key_file.as_ref(),
        };
        Ok(SendGridAccount {
            api_key: api_key.read()?,
            host: self.host().to_owned(),
            port: self.port(),
            tls: self.tls,
            timeout: self.timeout(),
        })
    }
}

fn set(value: Option<&String>, what: &'static str, key: &'static str) -> Result<String, AccountError> {
    let value = value.filter(|value| !value.trim().is_empty());
    value.cloned().ok_or(AccountError::Missing { what, key })
}
