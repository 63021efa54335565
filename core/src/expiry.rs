//! When a mailbox that stops sending is forgotten.

/// The expiry is kept at least this far ahead, in ms: longer than any window covers.
pub const AHEAD_AT_LEAST_MS: u64 = 25 * 3_600_000;
/// The expiry is set this far ahead, in ms: so it is written at most once an hour.
pub const AHEAD_MS: u64 = 26 * 3_600_000;

/// The expiry to set with an allowed reservation, in ms since 1970; none if the one that the key
/// has (`None`: somebody removed it) is good.
#[must_use]
pub fn renewed(expires_at: Option<u64>, now_ms: u64) -> Option<u64> {
    let earliest = now_ms.saturating_add(AHEAD_AT_LEAST_MS);
    let latest = now_ms.saturating_add(AHEAD_MS);
    match expires_at {
        Some(at) if (earliest..=latest).contains(&at) => None,
        _ => Some(latest),
    }
}
