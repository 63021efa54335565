//! A reservation ends: given back, or kept.

use crate::changes::Changes;
use crate::error::BadState;
use crate::id::ReservationId;
use crate::layout::{Entry, Offsets, Parts, RECENT};
use crate::redate::settle;
use crate::value::Value;
use crate::window::WindowKind;

/// Takes a reservation back: each window that still covers it gets its share back. Gives what
/// changed; nothing if the reservation was not open.
///
/// # Errors
/// If the value is not one of ours; it is left as it is.
pub fn release(
    value: &mut impl Value,
    kind: WindowKind,
    id: ReservationId,
    now_ms: u64,
) -> Result<Option<Changes>, BadState> {
    close(value, kind, id, now_ms, |parts, entry, changes| {
        take_back(parts, entry, changes);
    })
}

/// The mail is out: the budget stays used. In rolling windows the mail counts from now on, for it
/// arrived at some time since it was reserved, and a window that ends too early lets too much
/// through. Gives what changed; nothing if the reservation was not open.
///
/// # Errors
/// If the value is not one of ours; it is left as it is.
pub fn commit(
    value: &mut impl Value,
    kind: WindowKind,
    id: ReservationId,
    now_ms: u64,
) -> Result<Option<Changes>, BadState> {
    close(value, kind, id, now_ms, |parts, entry, changes| {
        if parts.kind == WindowKind::Rolling {
            take_back(parts, entry, changes);
            let offsets = Offsets::of(parts.kind);
            let (day, minute) = (
                parts.day.shape.slot_of(now_ms),
                parts.minute.shape.slot_of(now_ms),
            );
            changes.add_slots(offsets.day_ring, &parts.day.count(day, entry.recipients.get()));
            changes.add_slots(offsets.minute_ring, &parts.minute.count(minute, 1));
            parts.clock.set(now_ms);
        }
    })
}

fn close(
    value: &mut impl Value,
    kind: WindowKind,
    id: ReservationId,
    now_ms: u64,
    settle_budget: impl FnOnce(&mut Parts<'_>, &Entry, &mut Changes),
) -> Result<Option<Changes>, BadState> {
    if value.bytes().is_empty() {
        return Ok(None);
    }
    settle(value, kind, now_ms)?;
    let mut parts = Parts::of(value.bytes())?;
    let Some(place) = parts.log.find(id, now_ms) else {
        return Ok(None);
    };
    let Some(closed) = parts.log.close(place) else {
        return Ok(None);
    };

    let mut changes = Changes::none();
    let offsets = Offsets::of(parts.kind);
    if place >= RECENT {
        changes.add(offsets.place(place));
    }
    changes.add(offsets.hot..offsets.hot_end);
    settle_budget(&mut parts, &closed, &mut changes);
    parts.replicate(&mut changes);
    Ok(Some(changes))
}

fn take_back(parts: &mut Parts<'_>, entry: &Entry, changes: &mut Changes) {
    let offsets = Offsets::of(parts.kind);
    let day = parts.day.take_back(entry.day_slot.get(), entry.recipients.get());
    let minute = parts.minute.take_back(entry.minute_slot.get(), 1);
    changes.add_slots(offsets.day_ring, &day);
    changes.add_slots(offsets.minute_ring, &minute);
}
