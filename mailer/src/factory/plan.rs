//! Who gets which mailer: what follows from the configuration, with the secrets as they stand now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use mailrl_client::{Limits, Mailbox};

use super::FactoryError;
use crate::config::{GraphAccount, MailConfig, Provider, SendGridAccount, Tenant};

/// All that a mailer is made of; its key in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum MailerConfig {
    Graph { account: GraphAccount, limits: Limits },
    SendGrid(SendGridAccount),
}

/// What a mailer is made of, or why there is none.
pub(super) type Planned = Result<MailerConfig, FactoryError>;

/// Who gets which mailer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    tenants: BTreeMap<String, Planned>,
    mailboxes: BTreeMap<Mailbox, Planned>,
    other_mailboxes: Planned,
}

/// What differs between two plans, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) tenants: BTreeSet<String>,
    pub(super) mailboxes: BTreeSet<String>,
}

/// A sender whose mailer cannot be made.
pub(super) struct Fault<'a> {
    pub(super) tenant: Option<&'a str>,
    pub(super) mailbox: Option<&'a str>,
    pub(super) error: &'a FactoryError,
}

/// How all mailboxes are called that have no section of their own.
const OTHER_MAILBOXES: &str = "all others";

impl Plan {
    /// Reads the secrets; it may block.
    pub(super) fn of(config: &MailConfig) -> Self {
        let graph = config.graph.account().map_err(|error| unusable("[graph]", error));
        let sendgrid = config
            .sendgrid
            .account()
            .map_err(|error| unusable("[sendgrid]", error));
        let graph = |limits| {
            let account = graph.clone()?;
            Ok(MailerConfig::Graph { account, limits })
        };
        let mailboxes = config.mailbox.iter().map(|(mailbox, own)| {
            let planned = match own.provider {
                Provider::MicrosoftGraph => graph(config.limits_of(mailbox)),
                Provider::SendGrid => sendgrid.clone().map(MailerConfig::SendGrid),
            };
            (mailbox.clone(), planned)
        });
        let tenants = config.tenant.iter().map(|(name, tenant)| {
            let limits = config.default_limits();
            let planned = match tenant {
                Tenant::Graph(graph) => graph
                    .account()
                    .map(|account| MailerConfig::Graph { account, limits }),
                Tenant::SendGrid(sendgrid) => sendgrid.account().map(MailerConfig::SendGrid),
            };
            let planned = planned.map_err(|error| unusable(&format!("[tenant.{name}]"), error));
            (name.clone(), planned)
        });
        Self {
            tenants: tenants.collect(),
            mailboxes: mailboxes.collect(),
            other_mailboxes: graph(config.default_limits()),
        }
    }

    pub(super) fn tenant(&self, name: &str) -> Planned {
        self.tenants.get(name).cloned().unwrap_or_else(|| {
            let known: Vec<_> = self.tenants.keys().map(String::as_str).collect();
            let known = match &*known {
                [] => "there is none yet".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            Err(FactoryError::Unknown(format!(
                "no tenant is called {name:?}: add its section [tenant.NAME] to the configuration file, or name one \
                 that is there ({known})"
            )))
        })
    }

    pub(super) fn mailbox(&self, mailbox: &Mailbox) -> Planned {
        self.mailboxes
            .get(mailbox)
            .unwrap_or(&self.other_mailboxes)
            .clone()
    }

    /// All that mailers are made of.
    pub(super) fn configs(&self) -> impl Iterator<Item = &MailerConfig> {
        let all = self.tenants.values().chain(self.mailboxes.values());
        all.chain([&self.other_mailboxes]).flatten()
    }

    /// Those who are named in the configuration and get no mailer.
    pub(super) fn faults(&self) -> impl Iterator<Item = Fault<'_>> {
        let tenants = self
            .tenants
            .iter()
            .map(|(name, planned)| (Some(name.as_str()), None, planned));
        let mailboxes = self
            .mailboxes
            .iter()
            .map(|(mailbox, planned)| (None, Some(mailbox.as_str()), planned));
        tenants.chain(mailboxes).filter_map(|(tenant, mailbox, planned)| {
            let error = planned.as_ref().err()?;
            Some(Fault {
                tenant,
                mailbox,
                error,
            })
        })
    }

    /// Who gets another mailer.
    pub(super) fn difference(&self, new: &Self) -> Difference {
        let mut mailboxes = differing(&self.mailboxes, &new.mailboxes);
        if self.other_mailboxes != new.other_mailboxes {
            mailboxes.insert(OTHER_MAILBOXES.to_owned());
        }
        Difference {
            tenants: differing(&self.tenants, &new.tenants),
            mailboxes,
        }
    }
}

impl Difference {
    /// True if the fault's sender is among those who differ.
    pub(super) fn names(&self, fault: &Fault<'_>) -> bool {
        fault.tenant.is_some_and(|name| self.tenants.contains(name))
            || fault.mailbox.is_some_and(|name| self.mailboxes.contains(name))
    }
}

fn differing<K: Ord + Display, V: PartialEq>(old: &BTreeMap<K, V>, new: &BTreeMap<K, V>) -> BTreeSet<String> {
    let names = old.keys().chain(new.keys());
    let differ = names.filter(|&name| old.get(name) != new.get(name));
    differ.map(ToString::to_string).collect()
}

fn unusable(section: &str, error: impl Display) -> FactoryError {
    FactoryError::Unusable(format!("{section} of the configuration file: {error}"))
}

/// What is configured otherwise than this process started with, and cannot change while it runs.
pub(super) fn needs_restart(started_with: &MailConfig, now: &MailConfig) -> Vec<&'static str> {
    let sections = [
        ("redis", started_with.redis != now.redis),
        ("queue", started_with.queue != now.queue),
        ("store", started_with.store != now.store),
        (
            "limits.concurrent",
            started_with.limits.concurrent != now.limits.concurrent,
        ),
        // Reservations are open for as long as the longest send takes, and that was fixed at the start.
        ("timeout_s", started_with.lease() < now.lease()),
    ];
    let differing = sections.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(section, _)| section).collect()
}
