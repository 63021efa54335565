//! Makes the mailer for a message from the configuration, and keeps up with its changes.
//!
//! | sender | mailer |
//! | --- | --- |
//! | a tenant on Microsoft Graph | under the default limits, whatever is said of the mailbox it sends from |
//! | a mailbox of our own on Microsoft Graph | under its own limits, where it has none under the default ones |
//! | either on `SendGrid` | without the brake, since `SendGrid` has limits of its own |
//!
//! # Which mailers there are
//! A mailer is kept under its whole configuration, limits and secrets included (the value itself is
//! the key of the hash map, so that two that differ never meet). A changed limit therefore makes
//! another mailer for those whom it concerns, and all others keep theirs. What is below the brake,
//! with its connections and its access token, is shared by all that use the same account: a changed
//! limit costs neither. What the configuration does not mention any more is dropped; mailboxes that
//! it never mentioned share one mailer.
//!
//! # How changes come in
//! The configuration is looked at twice a second and compared with what holds, secrets included. It
//! is polled on purpose: that also works for the symbolic links of a Kubernetes `ConfigMap` and for
//! network folders, where notifications do not come. What differs counts once it has stood unchanged
//! for a tenth of a second, so that a file half written, or gone for a moment, changes nothing. What
//! is wrong is logged once ([`events::INVALID`]), and what held before goes on to hold.

mod cache;
pub mod events;
mod plan;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lettre::address::Envelope;
use mailrl_client::{Limits, MailRateLimiter, Mailbox, RateLimitedGraphMailer};
use tokio::task::JoinHandle;

use crate::config::{FileError, MailConfig};
use crate::mailer::Mailer;
use crate::message::Sender;
use cache::Cache;
use plan::{Plan, Planned};

/// Has a mailer for each message.
pub trait Mailers: Send + Sync {
    /// The mailer of this sender.
    fn mailer_for(&self, sender: &Sender, envelope: &Envelope) -> Result<Mailer, FactoryError>;
}

/// No mailer for a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactoryError {
    /// The configuration knows no such sender: its mail cannot be sent.
    #[error("{0}")]
    Unknown(String),
    /// What is configured cannot be used as it is; it may be mended, so mail is tried again.
    #[error("{0}")]
    Unusable(String),
}

/// A configuration that a factory cannot start with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The rate limiter cannot be made of it.
    #[error(transparent)]
    Limiter(#[from] mailrl_client::ConfigError),
}

/// Makes mailers as the configuration says; cheap to clone.
///
/// ```no_run
/// use mailrl_mailer::MailerFactory;
/// use mailrl_mailer::config::MailConfig;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let factory = MailerFactory::watch(|| MailConfig::read("mailrl.toml".as_ref()))?;
/// let mailer = factory.get_mailer("acme")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MailerFactory {
    shared: Arc<Shared>,
    /// Ends with the last clone.
    _watch: Arc<Watch>,
}

struct Shared {
    /// The one of this process.
    limiter: MailRateLimiter,
    state: Mutex<State>,
}

struct State {
    plan: Plan,
    cache: Cache,
}

struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What one look at the configuration comes to: what it says, and what follows from it now.
type Look = Result<(MailConfig, Plan), FileError>;

fn look(read: impl Fn() -> Result<MailConfig, FileError>) -> Look {
    let config = read()?;
    let plan = Plan::of(&config);
    Ok((config, plan))
}

impl MailerFactory {
    /// A factory on the configuration that `read` reads, which is called twice a second from now on;
    /// it may block. It must read the same file each time, and put whatever goes before the file
    /// (flags, the environment) before it each time.
    ///
    /// It does not connect: a process can start while Redis and the providers are down.
    ///
    /// # Errors
    /// If the configuration cannot be used right now.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn watch<R>(read: R) -> Result<Self, StartError>
    where
        R: Fn() -> Result<MailConfig, FileError> + Send + Sync + 'static,
    {
        let (config, plan) = look(&read)?;
        let limiter = MailRateLimiter::new(config.rate_limiter())?;
        events::unusable(plan.faults.iter());
        let shared = Arc::new(Shared {
            limiter,
            state: Mutex::new(State {
                plan: plan.clone(),
                cache: Cache::default(),
            }),
        });
        let mut change = Change {
            shared: shared.clone(),
            started_with: config.clone(),
            waits_for_restart: Vec::new(),
        };
        let watching = watch::watch(
            move || look(&read),
            Ok((config, plan)),
            move |look| change.take(look),
        );
        Ok(Self {
            shared,
            _watch: Arc::new(Watch(tokio::spawn(watching))),
        })
    }

    /// The mailer of a tenant, under the default limits.
    pub fn get_mailer(&self, tenant: &str) -> Result<Mailer, FactoryError> {
        let mut state = self.shared.state();
        let planned = state.plan.tenant(tenant);
        state.mailer(&planned, &self.shared.limiter)
    }

    /// The mailer of a mailbox of our own, under its limits.
    pub fn get_mailer_for_system_mailbox(&self, mailbox: &Mailbox) -> Result<Mailer, FactoryError> {
        let mut state = self.shared.state();
        let planned = state.plan.mailbox(mailbox);
        state.mailer(&planned, &self.shared.limiter)
    }

    /// Puts the brake around a mailer, with the limiter of this process.
    #[must_use]
    pub fn wrap_with_rate_limiter<M>(&self, mailer: M, limits: Limits) -> RateLimitedGraphMailer<M> {
        cache::braked(mailer, &self.shared.limiter, limits)
    }

    /// The limiter that all its mailers ask: flush it before the process ends.
    #[must_use]
    pub fn limiter(&self) -> &MailRateLimiter {
        &self.shared.limiter
    }
}

impl Mailers for MailerFactory {
    fn mailer_for(&self, sender: &Sender, envelope: &Envelope) -> Result<Mailer, FactoryError> {
        match sender {
            Sender::Tenant(tenant) => self.get_mailer(tenant),
            Sender::SystemMailbox => match envelope.from() {
                Some(address) => self.get_mailer_for_system_mailbox(&Mailbox::from(address)),
                None => Err(FactoryError::Unknown(
                    "the mail's envelope has no sender: set one, it is the mailbox that sends the mail"
                        .into(),
                )),
            },
        }
    }
}

impl fmt::Debug for MailerFactory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MailerFactory")
            .field("limiter", &self.shared.limiter)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn mailer(&mut self, planned: &Planned, limiter: &MailRateLimiter) -> Result<Mailer, FactoryError> {
        match planned {
            Ok(config) => self.cache.get(config, limiter),
            Err(error) => Err(error.clone()),
        }
    }
}

/// Takes changes of the configuration in.
struct Change {
    shared: Arc<Shared>,
    started_with: MailConfig,
    waits_for_restart: Vec<&'static str>,
}

impl Change {
    fn take(&mut self, look: &Look) {
        let (config, plan) = match look {
            Ok(read) => read,
            Err(error) => return events::invalid(error),
        };
        let before = {
            let mut state = self.shared.state();
            state.cache.retain(plan);
            std::mem::replace(&mut state.plan, plan.clone())
        };
        events::changed(&before.difference(plan));
        events::unusable(plan.faults.difference(&before.faults));
        let waits = plan::needs_restart(&self.started_with, config);
        if waits != self.waits_for_restart && !waits.is_empty() {
            events::restart_needed(&waits);
        }
        self.waits_for_restart = waits;
    }
}
