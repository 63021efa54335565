//! How a mailbox stands, for people and tools.

use crate::error::BadState;
use crate::layout::{Parts, clear};
use crate::limits::{Config, InForce, Lane, Wish};
use crate::redate::settle;
use crate::window::{Window, WindowKind};

/// How one window stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowStatus {
    /// What is used.
    pub used: u32,
    /// What may be used: the operator's override, else the module's configuration.
    pub limit: u32,
    /// When there is room for one more, in ms from now; 0 if there is now.
    pub room_in_ms: u64,
}

/// How a mailbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// How the windows are cut.
    pub kind: WindowKind,
    /// Messages in the minute.
    pub minute: WindowStatus,
    /// Recipients in the day.
    pub day: WindowStatus,
    /// Reservations that are neither released nor committed nor past their lease.
    pub open: usize,
    /// For how long nobody sends, in ms from now; 0 if not paused.
    pub paused_for_ms: u64,
    /// The operator's limits, where there are any.
    pub overrides: Wish,
}

/// Reads a mailbox's status from its value; an empty value is a mailbox that has used nothing.
///
/// # Errors
/// If the value is not one of ours.
pub fn status(value: &[u8], config: &Config, now_ms: u64) -> Result<Status, BadState> {
    let mut copy = value.to_vec();
    if copy.is_empty() {
        clear(&mut copy, config.kind, 0);
    }
    settle(&mut copy, config.kind, now_ms)?;
    let parts = Parts::of(&mut copy)?;
    let overrides = parts.header.overrides;
    let limits = InForce::of(config, &Wish::default(), Lane::Normal, Some(&overrides));
    Ok(Status {
        kind: parts.kind,
        minute: window_status(&parts.minute, limits.per_minute, now_ms),
        day: window_status(&parts.day, limits.per_day, now_ms),
        open: parts.log.open(now_ms),
        paused_for_ms: parts.header.paused_until.get().saturating_sub(now_ms),
        overrides: overrides.wish(),
    })
}

fn window_status(window: &Window<'_>, limit: u32, now_ms: u64) -> WindowStatus {
    let now = window.shape.slot_of(now_ms);
    let used = window.used(now);
    let room_in_ms = if used < limit {
        0
    } else {
        window.opens_at(now, limit, 1).saturating_sub(now_ms)
    };
    WindowStatus {
        used,
        limit,
        room_in_ms,
    }
}
