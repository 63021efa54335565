//! What Redis, or its absence, says to a mail.

use std::fmt;
use std::time::Duration;

use crate::Mailbox;
use crate::cause::FailOpenCause;

/// The answer to "may this mail go out now?".
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a reservation that is neither committed nor released blocks a place until its lease ends"]
pub enum Decision {
    /// It may, and its budget is reserved: send it, then commit or release the reservation.
    Allowed(Reservation),
    /// It may not yet: try again after `retry_after`.
    Denied(Denial),
    /// It never may: it has more recipients than the mailbox has in a whole day.
    TooLarge(TooLarge),
    /// Nobody knows, for Redis gave no decision: send it. Nothing is there to commit or release.
    FailOpen(FailOpen),
}

/// Budget that is set aside for one mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub(crate) mailbox: Mailbox,
    pub(crate) id: String,
    pub(crate) minute_left: u64,
    pub(crate) day_left: u64,
}

impl Reservation {
    /// The mailbox whose budget it is.
    #[must_use]
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// The id that Redis knows it by; nothing is to be read from it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Messages that the minute still had room for when this one was reserved.
    #[must_use]
    pub fn minute_left(&self) -> u64 {
        self.minute_left
    }

    /// Recipients that the day still had room for when this mail was reserved.
    #[must_use]
    pub fn day_left(&self) -> u64 {
        self.day_left
    }
}

/// A mail that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// What stands in its way.
    pub reason: DenialReason,
    /// How long to wait. With [`DenialReason::Concurrent`] it is a hint, else it is enough.
    pub retry_after: Duration,
}

/// What stands in the way of a mail that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenialReason {
    /// The minute has no message left.
    Minute,
    /// The day has too few recipients left.
    Day,
    /// As many sends of this mailbox as may be are under way.
    Concurrent,
    /// The mailbox is paused.
    Paused,
    /// The provider itself refused this mail for now, although Redis had allowed it.
    Upstream,
}

impl DenialReason {
    /// The reason as it stands in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Concurrent => "concurrent",
            Self::Paused => "paused",
            Self::Upstream => "upstream",
        }
    }
}

impl fmt::Display for DenialReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A mail that no day will ever have room for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TooLarge {
    /// What Redis said, with the limit in it.
    pub message: String,
}

/// A mail that goes out uncounted, since Redis gave no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {error}")]
pub struct FailOpen {
    /// The kind of failure.
    pub cause: FailOpenCause,
    /// What exactly happened, for people.
    pub error: String,
}

impl FailOpen {
    pub(crate) fn new(cause: FailOpenCause, error: impl Into<String>) -> Self {
        Self {
            cause,
            error: error.into(),
        }
    }
}
