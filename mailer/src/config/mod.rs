//! The configuration: one TOML file for the tool and the worker.
//!
//! `cli/mailrl.example.toml` explains each key. Keys that may be left out are `Option`s here, so that
//! whoever reads the file can put flags and the environment before it; the methods say what holds.
//!
//! | section | says |
//! | --- | --- |
//! | `[redis]` | where the budgets are kept |
//! | `[graph]`, `[sendgrid]` | how our own mailboxes send |
//! | `[tenant.NAME]` | how a tenant's mail is sent |
//! | `[limits]`, `[mailbox."ADDRESS"]` | what all mailboxes and what one is held to |
//! | `[queue]`, `[store]` | where mail waits, and for how long |
//!
//! The file holds no secret of a provider: it names a file or an environment variable that does.

mod account;
mod provider;
mod read;
mod secret;
mod sections;

use std::collections::BTreeMap;
use std::time::Duration;

use mailrl_client::{Mailbox, RateLimiterConfig};
use serde::Deserialize;

pub use account::{AccountError, GraphAccount, SendGridAccount};
pub use provider::{Graph, Provider, SendGrid, Tenant, Tls};
pub use read::FileError;
pub use sections::{Limits, MailboxConfig, Queue, Redis, Store};

/// How much longer than a send a reservation is open.
const LEASE_BEYOND_SEND: Duration = Duration::from_secs(10);

/// What the file can hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailConfig {
    /// Where the budgets are kept.
    pub redis: Redis,
    /// How our own mailboxes send through Microsoft Graph.
    #[serde(deserialize_with = "read::checked")]
    pub graph: Graph,
    /// How those that say so send through `SendGrid`.
    #[serde(deserialize_with = "read::checked")]
    pub sendgrid: SendGrid,
    /// What every mailbox is held to.
    pub limits: Limits,
    /// What single mailboxes of our own are held to instead.
    #[serde(deserialize_with = "read::by_mailbox")]
    pub mailbox: BTreeMap<Mailbox, MailboxConfig>,
    /// The tenants by name.
    pub tenant: BTreeMap<String, Tenant>,
    /// Where messages wait.
    pub queue: Queue,
    /// Where their mails are meanwhile.
    pub store: Store,
}

impl MailConfig {
    /// What a mailbox of our own is held to: what is said of it, else of all; where nothing is said,
    /// the module's own limits hold.
    #[must_use]
    pub fn limits_of(&self, mailbox: &Mailbox) -> mailrl_client::Limits {
        let own = self.mailbox.get(mailbox);
        let all = self.default_limits();
        mailrl_client::Limits {
            per_minute: own.and_then(|own| own.rate_limit_per_minute).or(all.per_minute),
            recipients_per_day: own
                .and_then(|own| own.rate_limit_recipients_per_day)
                .or(all.recipients_per_day),
        }
    }

    /// What all mailboxes are held to of which nothing else is said, those of tenants included.
    #[must_use]
    pub fn default_limits(&self) -> mailrl_client::Limits {
        mailrl_client::Limits {
            per_minute: self.limits.rate_limit_per_minute,
            recipients_per_day: self.limits.rate_limit_recipients_per_day,
        }
    }

    /// How the limiter is made: its reservations outlast the longest send that is configured.
    #[must_use]
    pub fn rate_limiter(&self) -> RateLimiterConfig {
        let mut config = RateLimiterConfig::new(self.redis.url()).lease(self.lease());
        if let Some(deadline_ms) = self.redis.deadline_ms {
            config = config.deadline(Duration::from_millis(deadline_ms));
        }
        if let Some(concurrent) = self.limits.concurrent {
            config = config.concurrent(Some(concurrent));
        }
        config
    }

    /// How long a reservation is open unless it is settled.
    #[must_use]
    pub fn lease(&self) -> Duration {
        let tenants = self.tenant.values().filter_map(|tenant| match tenant {
            Tenant::Graph(graph) => Some(graph),
            Tenant::SendGrid(_) => None,
        });
        let longest = tenants
            .map(Graph::timeout)
            .fold(self.graph.timeout(), Duration::max);
        longest + LEASE_BEYOND_SEND
    }

    /// How long handing one mail over may take at most, whatever the provider.
    #[must_use]
    pub fn longest_send(&self) -> Duration {
        let tenants = self.tenant.values().map(|tenant| match tenant {
            Tenant::Graph(graph) => graph.timeout(),
            Tenant::SendGrid(sendgrid) => sendgrid.timeout(),
        });
        let own = self.graph.timeout().max(self.sendgrid.timeout());
        tenants.fold(own, Duration::max)
    }

    /// The address of the queue's Redis; it may hold a password.
    #[must_use]
    pub fn queue_redis_url(&self) -> &str {
        self.queue.redis_url.as_deref().unwrap_or(self.redis.url())
    }
}

#[cfg(test)]
mod tests;
