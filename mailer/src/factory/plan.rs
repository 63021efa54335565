//! Who gets which mailer: what follows from the configuration, with the secrets as they stand now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use mailrl_client::{Limits, Mailbox};

use super::FactoryError;
use crate::config::{Graph, GraphAccount, MailConfig, Provider, SendGridAccount, Tenant};

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
    /// Why senders that are configured get no mailer, each reason once.
    pub(super) faults: BTreeSet<String>,
}

/// What differs between two plans, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) tenants: BTreeSet<String>,
    pub(super) mailboxes: BTreeSet<String>,
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
        let tenants: BTreeMap<_, Planned> = tenants.collect();
        let mailboxes: BTreeMap<_, Planned> = mailboxes.collect();
        let other_mailboxes = graph(config.default_limits());
        // Who has tenants only, leaves [graph] out altogether.
        let others = (config.graph != Graph::default()).then_some(&other_mailboxes);
        let all = tenants.values().chain(mailboxes.values()).chain(others);
        let faults = all.filter_map(|planned| planned.as_ref().err());
        let faults = faults.map(ToString::to_string).collect();
        Self {
            tenants,
            mailboxes,
            other_mailboxes,
            faults,
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
