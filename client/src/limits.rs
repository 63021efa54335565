//! What a mailbox is held to.

use std::num::NonZeroU32;

/// The limits that are configured for one mailbox; the default is none at all.
///
/// Only those that are set go to Redis with a reservation. For the others the module's own
/// configuration holds, and an operator's override (`MAILRL.LIMITS`) goes before both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Messages in a minute.
    pub per_minute: Option<NonZeroU32>,
    /// Recipients in a day, each message counting each of its recipients.
    pub recipients_per_day: Option<NonZeroU32>,
}
