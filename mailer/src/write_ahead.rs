//! Something that must be written down before a mail is handed to the wire.
//!
//! Who keeps records of messages runs each send in [`scope`] with what to do first; a
//! [`WriteAhead`] around the innermost mailer does it once the budget is reserved, just before the
//! mail goes out. If it fails, the mail is not sent. So a record can tell mail that was waiting from
//! mail that may be out, even when the process is killed in between.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::{MailOutcome, SendFailure};

/// What has to be done before a mail goes out, with why it could not be done.
pub type BeforeSend = Arc<dyn Fn() -> BoxFuture<'static, Result<(), NotRecorded>> + Send + Sync>;

tokio::task_local! {
    static BEFORE_SEND: BeforeSend;
}

/// What had to be written down first was not, so the mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the mail was not sent, for its record could not be written first: {0}")]
pub struct NotRecorded(pub String);

/// Runs a send that must not hand its mail over before `before_send` succeeded.
pub async fn scope<F: Future>(before_send: BeforeSend, send: F) -> F::Output {
    BEFORE_SEND.scope(before_send, send).await
}

/// A mailer around the innermost mailer, that first does what [`scope`] asks for.
#[derive(Debug, Clone)]
pub struct WriteAhead<M> {
    inner: M,
}

/// Why a mail did not go out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteAheadError<E> {
    /// Nothing was handed over.
    #[error(transparent)]
    NotRecorded(#[from] NotRecorded),
    /// The mailer inside failed.
    #[error(transparent)]
    Send(E),
}

impl<M> WriteAhead<M> {
    /// Puts it around a mailer.
    #[must_use]
    pub fn new(inner: M) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl<M> AsyncTransport for WriteAhead<M>
where
    M: AsyncTransport + Sync,
    M::Ok: Send,
    M::Error: Send,
{
    type Ok = M::Ok;
    type Error = WriteAheadError<M::Error>;

    async fn send_raw(&self, envelope: &Envelope, email: &[u8]) -> Result<M::Ok, Self::Error> {
        if let Ok(before_send) = BEFORE_SEND.try_with(Arc::clone) {
            before_send().await?;
        }
        self.inner
            .send_raw(envelope, email)
            .await
            .map_err(WriteAheadError::Send)
    }

    async fn shutdown(&self) {
        self.inner.shutdown().await;
    }
}

impl<E: SendFailure + 'static> SendFailure for WriteAheadError<E> {
    fn mail_outcome(&self) -> MailOutcome {
        match self {
            Self::NotRecorded(_) => MailOutcome::NotSent,
            Self::Send(error) => error.mail_outcome(),
        }
    }

    fn is_permanent(&self) -> bool {
        match self {
            Self::NotRecorded(_) => false,
            Self::Send(error) => error.is_permanent(),
        }
    }

    fn was_tried(&self) -> bool {
        match self {
            Self::NotRecorded(_) => false,
            Self::Send(error) => error.was_tried(),
        }
    }
}
