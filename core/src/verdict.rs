//! What a call asks for, and what it is told.

use crate::changes::Changes;
use crate::expiry::Lifetime;
use crate::id::ReservationId;
use crate::limits::{Lane, Wish};

/// How long who was denied for `concurrent` should wait, in ms: a hint, for when a place comes
/// free is not known.
pub const CONCURRENT_HINT_MS: u64 = 250;

/// How long a mail has to wait that no day holds only because of the operator's override, in ms:
/// the operator may change it.
pub const OVERRIDE_WAIT_MS: u64 = 3_600_000;

/// The longest time that a denied call is told to wait, in ms: 25 h.
pub const MOST_RETRY_AFTER_MS: u64 = 25 * 3_600_000;

/// What one call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What the message costs of the day, from 1.
    pub recipients: u32,
    /// The limits it asks for.
    pub wish: Wish,
    /// Whom it leaves room for.
    pub lane: Lane,
    /// For how long it can be released, in ms, from 1.
    pub lease_ms: u32,
}

/// Why a call was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// One more message would overrun the minute.
    Minute,
    /// The recipients would overrun the day.
    Day,
    /// As many reservations are open as may be at once.
    Concurrent,
    /// Nobody sends from this mailbox for now.
    Paused,
}

impl Reason {
    /// The name used in replies and counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Concurrent => "concurrent",
            Self::Paused => "paused",
        }
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both windows have counted it.
    Allowed(ReservationId),
    /// Nothing was counted.
    Denied {
        /// What keeps the caller waiting longest.
        reason: Reason,
        /// After this time, from 1 ms to 25 h, it is allowed if nobody else comes; a hint for
        /// [`Reason::Concurrent`].
        retry_after_ms: u64,
    },
    /// No day will ever hold so many recipients.
    TooLarge {
        /// The limit of the whole day, of its lane.
        per_day: u32,
    },
}

/// What was decided, and how much is left after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Allowed or not.
    pub verdict: Verdict,
    /// Messages left in the minute, for its lane.
    pub minute_left: u32,
    /// Recipients left in the day, for its lane.
    pub day_left: u32,
    /// How long the value is kept.
    pub lifetime: Lifetime,
    /// What the call changed and has to be replicated: all of a new value, nothing if it was not
    /// allowed.
    pub changes: Changes,
}
