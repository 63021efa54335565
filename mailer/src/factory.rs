//! Makes the mailer for a message from the configuration.

use lettre::address::Envelope;

use crate::mailer::Mailer;
use crate::message::Sender;

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
