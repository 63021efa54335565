//! When a mailbox that stops sending is forgotten.

/// The expiry is kept at least this far ahead, in ms: longer than any window covers.
pub const AHEAD_AT_LEAST_MS: u64 = 25 * 3_600_000;
/// The expiry is set this far ahead, in ms: so it is written at most once an hour.
pub const AHEAD_MS: u64 = 26 * 3_600_000;

/// How long a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until some time after the mailbox stopped sending.
    Expires,
    /// For good: the operator's limits are kept in it.
    Kept,
}

/// What is to be done about the expiry of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It is good as it is.
    Stays,
    /// It has to be this time, in ms since 1970.
    At(u64),
    /// There must be none.
    Removed,
}

/// What is to be done about the expiry that a key has (`None`: it has none), when its mailbox sends
/// or is changed.
#[must_use]
pub fn due(lifetime: Lifetime, expires_at: Option<u64>, now_ms: u64) -> Expiry {
    let earliest = now_ms.saturating_add(AHEAD_AT_LEAST_MS);
    let latest = now_ms.saturating_add(AHEAD_MS);
    match (lifetime, expires_at) {
        (Lifetime::Kept, None) => Expiry::Stays,
        (Lifetime::Kept, Some(_)) => Expiry::Removed,
        (Lifetime::Expires, Some(at)) if (earliest..=latest).contains(&at) => Expiry::Stays,
        (Lifetime::Expires, _) => Expiry::At(latest),
    }
}
