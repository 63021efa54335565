//! Sends a message, or says when it will be sent: being denied is no error.
//!
//! The service sees a mailer and no more: it knows of no Redis, no queue and no record. What it
//! answers, its caller keeps and acts on ([`queue`](crate::queue) does).

mod deferral;
pub mod events;

use std::time::{Duration, SystemTime};

use mailrl_client::MailRateLimitExceeded;

pub use deferral::{Deferral, DeferralReason, MOST_SPREAD, spread};

use crate::factory::{FactoryError, Mailers};
use crate::mailer::MailerError;
use crate::message::{MailMessage, MessageId};

/// When to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How old a message may become; 48 h by default.
    pub age_limit: Duration,
    /// How often a message that certainly was not sent is tried again, being denied aside; 5 by
    /// default.
    pub retries: u32,
    /// The pause before the first of them, each next one four times as long; 30 s by default.
    pub first_pause: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            age_limit: Duration::from_hours(48),
            retries: 5,
            first_pause: Duration::from_secs(30),
        }
    }
}

impl Policy {
    /// The pause after so many failures, the first being 1.
    fn pause(&self, failures: u32) -> Duration {
        let factor = 4_u32.saturating_pow(failures.saturating_sub(1));
        self.first_pause.saturating_mul(factor).min(self.age_limit)
    }
}

/// What became of a message that nothing is wrong with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The provider has accepted it.
    Sent,
    /// It is to be sent again at a time that stands in here.
    Scheduled(Deferral),
}

/// A message that will not be sent by itself any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// It was not sent.
    #[error("not sent: {0}")]
    Failed(String),
    /// It may have been sent; sending it again may send it twice.
    #[error("may have been sent: {0}")]
    Unknown(String),
}

/// Sends messages with the mailers that `M` has for them.
#[derive(Debug, Clone)]
pub struct MailProviderService<M> {
    mailers: M,
    policy: Policy,
}

impl<M: Mailers> MailProviderService<M> {
    /// A service that gives up as `policy` says.
    pub fn new(mailers: M, policy: Policy) -> Self {
        Self { mailers, policy }
    }

    /// Sends the message, or says when to send it again.
    ///
    /// # Errors
    /// If it was not sent and never will be, or may have been sent.
    pub async fn send(&self, message: &MailMessage) -> Result<Delivery, DeliveryError> {
        let answer = self.try_send(message).await;
        events::answered(&message.id, &message.mailbox(), &answer);
        answer
    }

    /// When it gives up.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// When to send a message again that cannot be tried now, for a reason that is none of its own;
    /// that is no try.
    ///
    /// # Errors
    /// If it is too old by then.
    pub fn postpone(
        &self,
        id: &MessageId,
        created_at: SystemTime,
        error: String,
    ) -> Result<Delivery, DeliveryError> {
        let reason = DeferralReason::Unavailable(error);
        self.schedule(id, created_at, self.policy.first_pause, reason)
    }

    /// When to send a message again that was tried and certainly not sent.
    ///
    /// # Errors
    /// If that was its last try, or it is too old by then.
    pub fn retry(&self, message: &MailMessage, error: String) -> Result<Delivery, DeliveryError> {
        let failures = message.failures.saturating_add(1);
        if failures > self.policy.retries {
            return Err(DeliveryError::Failed(format!(
                "{error}; that was try {failures}, the last one"
            )));
        }
        let pause = self.policy.pause(failures);
        let reason = DeferralReason::Failure(error);
        self.schedule(&message.id, message.created_at, pause, reason)
    }

    async fn try_send(&self, message: &MailMessage) -> Result<Delivery, DeliveryError> {
        if age(message.created_at, SystemTime::now()) >= self.policy.age_limit {
            return Err(self.too_old(message.created_at, "it waited too long"));
        }
        let mailer = match self.mailers.mailer_for(&message.sender, &message.envelope) {
            Ok(mailer) => mailer,
            Err(FactoryError::Unknown(error)) => return Err(DeliveryError::Failed(error)),
            Err(FactoryError::Unusable(error)) => {
                return self.postpone(&message.id, message.created_at, error);
            }
        };
        match mailer.send_raw(&message.envelope, &message.mime).await {
            Ok(()) => Ok(Delivery::Sent),
            Err(MailerError::Exceeded(exceeded)) => self.put_off(message, exceeded),
            Err(MailerError::NotSent(error)) => self.retry(message, error),
            Err(MailerError::NotTried(error)) => self.postpone(&message.id, message.created_at, error),
            Err(MailerError::Refused(error)) => Err(DeliveryError::Failed(error)),
            Err(MailerError::Unknown(error)) => Err(DeliveryError::Unknown(error)),
        }
    }

    /// Denied: that is nobody's fault, and no try.
    fn put_off(
        &self,
        message: &MailMessage,
        MailRateLimitExceeded { reason, retry_after }: MailRateLimitExceeded,
    ) -> Result<Delivery, DeliveryError> {
        let reason = DeferralReason::Denied(reason);
        self.schedule(&message.id, message.created_at, retry_after, reason)
    }

    fn schedule(
        &self,
        id: &MessageId,
        created_at: SystemTime,
        retry_after: Duration,
        reason: DeferralReason,
    ) -> Result<Delivery, DeliveryError> {
        let deferral = Deferral::new(id, SystemTime::now(), retry_after, reason);
        if age(created_at, deferral.scheduled_on) >= self.policy.age_limit {
            let why = format!("its turn would come too late ({})", deferral.reason);
            return Err(self.too_old(created_at, &why));
        }
        Ok(Delivery::Scheduled(deferral))
    }

    fn too_old(&self, created_at: SystemTime, why: &str) -> DeliveryError {
        let hours = self.policy.age_limit.as_secs_f64() / 3600.0;
        let age = age(created_at, SystemTime::now()).as_secs_f64() / 3600.0;
        DeliveryError::Failed(format!(
            "{why}: it is {age:.1} h old, and the age limit is {hours} h"
        ))
    }
}

fn age(created_at: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(created_at).unwrap_or_default()
}
