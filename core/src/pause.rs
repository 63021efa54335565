//! Nobody sends from a mailbox for a while.

use crate::changes::Changes;
use crate::error::BadState;
use crate::expiry::Lifetime;
use crate::layout::{Offsets, Parts, clear};
use crate::redate::settle;
use crate::value::Value;
use crate::window::WindowKind;

/// The longest pause, in ms: 24 h.
pub const MOST_PAUSE_MS: u32 = 86_400_000;

/// What a pause did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// When the pause ends, in ms since 1970; 0 if there is none.
    pub until: u64,
    /// How long the value is kept.
    pub lifetime: Lifetime,
    /// What changed and has to be replicated, if anything did.
    pub changes: Option<Changes>,
}

/// Pauses a mailbox for `pause_ms` from now; the longer pause wins, 0 ends it.
///
/// # Errors
/// If the value is not one of ours; it is left as it is.
pub fn pause(
    value: &mut impl Value,
    kind: WindowKind,
    pause_ms: u32,
    now_ms: u64,
) -> Result<Paused, BadState> {
    let mut changes = Changes::none();
    if value.bytes().is_empty() {
        if pause_ms == 0 {
            return Ok(Paused {
                until: 0,
                lifetime: Lifetime::Expires,
                changes: None,
            });
        }
        clear(value, kind, 0);
        changes = Changes::Whole;
    }
    settle(value, kind, now_ms)?;
    let mut parts = Parts::of(value.bytes())?;
    let lifetime = parts.header.overrides.lifetime();
    let before = parts.header.paused_until.get();
    let until = match pause_ms {
        0 => 0,
        _ => before.max(now_ms.saturating_add(u64::from(pause_ms))),
    };
    if until == before {
        return Ok(Paused {
            until,
            lifetime,
            changes: None,
        });
    }
    parts.header.paused_until.set(until);
    // The moment that a later step of the clock is measured from.
    parts.clock.set(now_ms);
    let offsets = Offsets::of(parts.kind);
    changes.add(offsets.pause..offsets.pause.saturating_add(8));
    changes.add(offsets.hot..offsets.hot_end);
    parts.replicate(&mut changes);
    Ok(Paused {
        until,
        lifetime,
        changes: Some(changes),
    })
}
