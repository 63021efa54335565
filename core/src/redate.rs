//! A clock that steps back, and a window kind that changes: both leave counts that the windows do
//! not understand. They are moved, never dropped: no step frees budget, and none blocks a mailbox
//! for longer than its window.

use zerocopy::little_endian::U32;

use crate::error::BadState;
use crate::layout::{Parts, clear};
use crate::pause::MOST_PAUSE_MS;
use crate::value::Value;
use crate::window::{Now, Shape, Window, WindowKind};

/// The slot of a share that no window counts any more: long past, so that none covers it.
const GONE: u32 = 0;

/// Brings a value up to the clock and to the window kind that is configured.
///
/// The change is also needed by calls that are denied, which replicate nothing; so it is marked in
/// the value, and the next write replicates all of it.
pub(crate) fn settle(value: &mut impl Value, kind: WindowKind, now_ms: u64) -> Result<(), BadState> {
    let mut parts = Parts::of(value.bytes())?;
    let is_ahead = lies_ahead(&parts, Now::of(parts.kind, now_ms));
    if !is_ahead && parts.kind == kind {
        return Ok(());
    }
    if is_ahead {
        date_back(&mut parts, now_ms);
    }
    parts.set_unreplicated();
    if parts.kind != kind {
        switch_kind(value, kind, now_ms)?;
    }
    Ok(())
}

/// Whether there is nothing to [`settle`]; `now` is of the window kind that is configured.
pub(crate) fn is_settled(parts: &Parts<'_>, kind: WindowKind, now: Now) -> bool {
    parts.kind == kind && !lies_ahead(parts, now)
}

/// Whether something was written at a later time than now, or could only have been.
fn lies_ahead(parts: &Parts<'_>, now: Now) -> bool {
    now.ms < parts.clock.get()
        || now.minute_slot < parts.minute.head.slot.get()
        || now.day_slot < parts.day.head.slot.get()
        || parts.header.paused_until.get() > latest_pause(now.ms)
}

fn latest_pause(now_ms: u64) -> u64 {
    now_ms.saturating_add(MOST_PAUSE_MS.into())
}

/// Moves what lies in the future to now, and what lasts until a time back by the clock's step.
fn date_back(parts: &mut Parts<'_>, now_ms: u64) {
    let step = parts.clock.get().saturating_sub(now_ms);
    let earlier = |at: u64| at.saturating_sub(step);
    for entry in parts.log.all_mut() {
        // A share that has left its window must not be taken back once its slot is the present again.
        let moved = |window: &Window<'_>, slot: U32| {
            let covered = window.shape.covers(slot.get(), window.head.slot.get());
            U32::new(if covered {
                slot.get().min(window.shape.slot_of(now_ms))
            } else {
                GONE
            })
        };
        entry.minute_slot = moved(&parts.minute, entry.minute_slot);
        entry.day_slot = moved(&parts.day, entry.day_slot);
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        entry.lease_ms.set(entry.lease_ms.get().saturating_sub(step));
    }
    for window in [&mut parts.minute, &mut parts.day] {
        let newest = window.shape.slot_of(now_ms).min(window.head.slot.get());
        let counts: Vec<_> = window
            .counts()
            .map(|(slot, count)| (slot.min(newest), count))
            .collect();
        window.refill(newest, &counts);
    }
    let paused_until = earlier(parts.header.paused_until.get());
    parts
        .header
        .paused_until
        .set(paused_until.min(latest_pause(now_ms)));
    for lanes in [&mut parts.header.minute_turns, &mut parts.header.day_turns] {
        lanes.normal.date_back(step);
        lanes.bulk.date_back(step);
    }
    parts.log.head.earliest_end_s.set(0);
    parts.clock.set(now_ms);
}

/// Rewrites a value for another window kind. What is used stays used, all of it as of now.
fn switch_kind(value: &mut impl Value, kind: WindowKind, now_ms: u64) -> Result<(), BadState> {
    let mut copy = value.bytes().to_vec();
    let mut old = Parts::of(&mut copy)?;
    clear(value, kind, old.log.older.len());
    let mut new = Parts::of(value.bytes())?;

    new.header.take_over(old.header);
    new.clock.set(now_ms);
    *new.log.head = *old.log.head;
    for (new, old_entry) in new.log.all_mut().zip(old.log.all_mut()) {
        *new = *old_entry;
        let moved = |old: &Window<'_>, slot: u32, shape: Shape| {
            let covered = old.shape.covers(slot, old.shape.slot_of(now_ms));
            U32::new(if covered { shape.slot_of(now_ms) } else { GONE })
        };
        new.minute_slot = moved(&old.minute, old_entry.minute_slot.get(), kind.minute());
        new.day_slot = moved(&old.day, old_entry.day_slot.get(), kind.day());
    }
    for (old, mut new) in [(old.minute, new.minute), (old.day, new.day)] {
        let now = new.shape.slot_of(now_ms);
        let used = old.used(old.shape.slot_of(now_ms));
        new.refill(now, &[(now, used)]);
    }
    Ok(())
}
