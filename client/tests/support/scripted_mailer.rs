//! A mailer that does what a test tells it to.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::{MailOutcome, SendFailure, handover};

/// What becomes of a send.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    Accept,
    AcceptAfter(Duration),
    Fail(MailOutcome),
    /// Says that nothing has been written, and stays there.
    HangBeforeHandover,
    /// Says that the mail has been written, and stays there.
    HangAfterHandover,
    /// Says nothing about it, and stays there.
    HangInSilence,
    Panic,
}

#[derive(Debug)]
pub struct ScriptedMailer {
    act: Act,
    sent: Mutex<Vec<Envelope>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptedError(pub MailOutcome);

impl std::fmt::Display for ScriptedError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "scripted: {:?}", self.0)
    }
}

impl std::error::Error for ScriptedError {}

impl SendFailure for ScriptedError {
    fn mail_outcome(&self) -> MailOutcome {
        self.0
    }
}

impl ScriptedMailer {
    pub fn that(act: Act) -> Self {
        Self {
            act,
            sent: Mutex::default(),
        }
    }

    /// How many sends it was asked for.
    pub fn sends(&self) -> usize {
        self.sent.lock().unwrap().len()
    }
}

#[async_trait]
impl AsyncTransport for ScriptedMailer {
    type Ok = &'static str;
    type Error = ScriptedError;

    async fn send_raw(&self, envelope: &Envelope, _email: &[u8]) -> Result<Self::Ok, Self::Error> {
        self.sent.lock().unwrap().push(envelope.clone());
        match self.act {
            Act::Accept => {}
            Act::AcceptAfter(wait) => tokio::time::sleep(wait).await,
            Act::Fail(outcome) => return Err(ScriptedError(outcome)),
            Act::HangBeforeHandover => {
                handover::request_not_yet_written();
                std::future::pending::<()>().await;
            }
            Act::HangAfterHandover => {
                handover::request_not_yet_written();
                handover::request_written();
                std::future::pending::<()>().await;
            }
            Act::HangInSilence => std::future::pending::<()>().await,
            Act::Panic => panic!("scripted"),
        }
        Ok("202 Accepted")
    }
}
