//! The decision: may one more message go out now?

use zerocopy::little_endian::{I32, U32, U64};

use crate::changes::Changes;
use crate::denial::denial;
use crate::error::BadState;
use crate::id::ReservationId;
use crate::layout::{Entry, Offsets, Parts, clear};
use crate::limits::{Config, InForce};
use crate::redate::{is_settled, settle};
use crate::room::make_room;
use crate::turns::Pace;
use crate::used::Used;
use crate::value::Value;
use crate::verdict::{Answer, Request, Verdict};
use crate::window::Now;

/// Checks and counts one message, in one step.
///
/// # Errors
/// If the value is not one of ours; it is left as it is.
pub fn reserve(
    value: &mut impl Value,
    config: &Config,
    request: &Request,
    now_ms: u64,
) -> Result<Answer, BadState> {
    let now = Now::of(config.kind, now_ms);
    if value.bytes().is_empty() {
        return Ok(reserve_first(value, config, request, now));
    }
    let mut parts = Parts::of(value.bytes())?;
    if !is_settled(&parts, config.kind, now) {
        settle(value, config.kind, now_ms)?;
        parts = Parts::of(value.bytes())?;
    }
    let limits = InForce::of(config, &request.wish, request.lane, Some(&parts.header.overrides));
    let used = Used::of(&parts, now);
    if let Some(verdict) = denial(&mut parts, config, &limits, request, used, now) {
        return Ok(used.answer(verdict, &limits, Changes::none()));
    }
    let mut changes = Changes::none();
    if !parts.log.is_short(now_ms) {
        parts.log.drop_closed(now_ms);
        if parts.log.needs_room(now_ms) {
            make_room(value, now_ms, &mut changes)?;
            parts = Parts::of(value.bytes())?;
        }
    }
    if config.pacing {
        note_allowed(&mut parts, &limits, request, now_ms);
    }
    let id = count(&mut parts, request, now, &mut changes);
    Ok(used
        .and(request.recipients)
        .answer(Verdict::Allowed(id), &limits, changes))
}

/// A mailbox without a value has its whole budget.
fn reserve_first(value: &mut impl Value, config: &Config, request: &Request, now: Now) -> Answer {
    let limits = InForce::of(config, &request.wish, request.lane, None);
    let used = Used { minute: 0, day: 0 };
    if request.recipients > limits.per_day {
        return used.answer(
            Verdict::TooLarge {
                per_day: limits.per_day,
            },
            &limits,
            Changes::none(),
        );
    }
    clear(value, config.kind, 0);
    let id = match Parts::of(value.bytes()) {
        Ok(mut parts) => count(&mut parts, request, now, &mut Changes::Whole),
        // Not reached: `clear` has just made it.
        Err(_) => ReservationId { ms: now.ms, seq: 0 },
    };
    used.and(request.recipients)
        .answer(Verdict::Allowed(id), &limits, Changes::Whole)
}

/// Tells the queues of both windows that somebody was allowed.
fn note_allowed(parts: &mut Parts<'_>, limits: &InForce, request: &Request, now_ms: u64) {
    let minute = Pace::of(parts.minute.shape, limits.per_minute);
    let day = Pace::of(parts.day.shape, limits.per_day);
    let header = &mut *parts.header;
    header
        .minute_turns
        .of(request.lane)
        .note_allowed(minute, 1, now_ms);
    header
        .day_turns
        .of(request.lane)
        .note_allowed(day, request.recipients, now_ms);
}

/// Counts the message in both windows and remembers its reservation. The log has room.
fn count(parts: &mut Parts<'_>, request: &Request, now: Now, changes: &mut Changes) -> ReservationId {
    let offsets = Offsets::of(parts.kind);
    let day = parts.day.count(now.day_slot, request.recipients);
    let minute = parts.minute.count(now.minute_slot, 1);
    changes.add_slots(offsets.day_ring, &day);
    changes.add_slots(offsets.minute_ring, &minute);
    changes.add(offsets.hot..offsets.hot_end);
    parts.clock.set(now.ms);

    let id = ReservationId {
        ms: now.ms,
        seq: parts.log.head.next_seq.get(),
    };
    let entry = Entry {
        made_at: U64::new(id.ms),
        seq: U32::new(id.seq),
        recipients: U32::new(request.recipients),
        minute_slot: U32::new(now.minute_slot),
        day_slot: U32::new(now.day_slot),
        // At most an hour.
        lease_ms: I32::new(request.lease_ms.cast_signed()),
    };
    parts.log.push(entry, now.ms, offsets, changes);
    parts.replicate(changes);
    id
}
