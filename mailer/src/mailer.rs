//! Any mailer, whatever the provider: what the factory makes and the service sends with.

use std::sync::Arc;

use async_trait::async_trait;
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::{DenialReason, MailOutcome, MailRateLimitExceeded, RateLimitedError, SendFailure};

use crate::write_ahead::WriteAheadError;

/// Any mailer: a lettre transport whose answers do not depend on the provider.
pub type Mailer = Arc<dyn AsyncTransport<Ok = (), Error = MailerError> + Send + Sync>;

/// A mail that did not go out, or may have; the same for every provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailerError {
    /// It has to wait.
    #[error(transparent)]
    Exceeded(#[from] MailRateLimitExceeded),
    /// It was not sent, but may be later.
    #[error("{0}")]
    NotSent(String),
    /// It was not even tried, and may be later.
    #[error("{0}")]
    NotTried(String),
    /// It was not sent, and would not be another time either.
    #[error("{0}")]
    Refused(String),
    /// It may have been sent.
    #[error("{0}")]
    Unknown(String),
}

impl MailerError {
    /// What another mailer's error comes to.
    pub fn of(error: &(impl SendFailure + ?Sized)) -> Self {
        let text = error.to_string();
        match error.mail_outcome() {
            MailOutcome::Unknown => Self::Unknown(text),
            MailOutcome::Throttled { retry_after } => Self::Exceeded(MailRateLimitExceeded {
                reason: DenialReason::Upstream,
                retry_after,
            }),
            MailOutcome::NotSent if error.is_permanent() => Self::Refused(text),
            MailOutcome::NotSent if !error.was_tried() => Self::NotTried(text),
            MailOutcome::NotSent => Self::NotSent(text),
        }
    }
}

impl<E: SendFailure + 'static> From<RateLimitedError<E>> for MailerError {
    fn from(error: RateLimitedError<E>) -> Self {
        match error.exceeded() {
            Some(exceeded) => Self::Exceeded(*exceeded),
            None => Self::of(&error),
        }
    }
}

impl<E: SendFailure + 'static> From<WriteAheadError<E>> for MailerError {
    fn from(error: WriteAheadError<E>) -> Self {
        Self::of(&error)
    }
}

/// Makes any transport whose errors say what became of the mail into a [`Mailer`].
#[derive(Debug, Clone)]
pub struct AnyMailer<M>(pub M);

#[async_trait]
impl<M> AsyncTransport for AnyMailer<M>
where
    M: AsyncTransport + Sync,
    M::Ok: Send,
    M::Error: Into<MailerError> + Send,
{
    type Ok = ();
    type Error = MailerError;

    async fn send_raw(&self, envelope: &Envelope, email: &[u8]) -> Result<(), MailerError> {
        self.0
            .send_raw(envelope, email)
            .await
            .map(|_| ())
            .map_err(Into::into)
    }

    async fn shutdown(&self) {
        self.0.shutdown().await;
    }
}
