//! How far a message has come.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MessageState {
    /// Nobody has tried to send it yet.
    Pending,
    /// Somebody is about to send it.
    Sending,
    /// The provider has accepted it.
    Sent,
    /// It waits for its time.
    Scheduled,
    /// It was not sent and will not be.
    Failed,
    /// It may have been sent: a person decides.
    Unknown,
}

impl MessageState {
    /// The state as it stands in logs, records and the queue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Sending => "SENDING",
            Self::Sent => "SENT",
            Self::Scheduled => "SCHEDULED",
            Self::Failed => "FAILED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// True if nothing happens to the message any more by itself, and its record may go.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Sent | Self::Failed)
    }
}

impl fmt::Display for MessageState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
