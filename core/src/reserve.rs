//! The decision: may one more message go out now?

use zerocopy::little_endian::{I32, U32, U64};

use crate::changes::Changes;
use crate::error::BadState;
use crate::id::ReservationId;
use crate::layout::{Entry, FEWEST_PLACES, Offsets, Parts, clear};
use crate::limits::{Config, InForce, Wish};
use crate::redate::settle;
use crate::reservation::entry_range;
use crate::room::make_room;
use crate::value::Value;

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
        /// After this time, from 1 ms, it is allowed if nobody else comes; a hint for
        /// [`Reason::Concurrent`].
        retry_after_ms: u64,
    },
    /// No day will ever hold so many recipients.
    TooLarge {
        /// The limit of the whole day.
        per_day: u32,
    },
}

/// What was decided, and how much is left after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Allowed or not.
    pub verdict: Verdict,
    /// Messages left in the minute.
    pub minute_left: u32,
    /// Recipients left in the day.
    pub day_left: u32,
    /// What the call changed and has to be replicated: all of a new value, nothing if it was not
    /// allowed.
    pub changes: Changes,
}

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
    if value.bytes().is_empty() {
        return Ok(reserve_first(value, config, request, now_ms));
    }
    settle(value, config.kind, now_ms)?;
    let mut parts = Parts::of(value.bytes())?;
    let limits = InForce::of(config, &request.wish, Some(&parts.header.overrides));
    let used = Used::of(&parts, now_ms);
    if let Some(verdict) = denial(&parts, &limits, request, used, now_ms) {
        return Ok(used.answer(verdict, &limits, Changes::none()));
    }
    let mut changes = Changes::none();
    parts.log.drop_closed(now_ms);
    if parts.log.needs_room(now_ms) {
        make_room(value, now_ms, &mut changes)?;
        parts = Parts::of(value.bytes())?;
    }
    let id = count(&mut parts, request, now_ms, &mut changes);
    Ok(used
        .and(request.recipients)
        .answer(Verdict::Allowed(id), &limits, changes))
}

/// A mailbox without a value has its whole budget.
fn reserve_first(value: &mut impl Value, config: &Config, request: &Request, now_ms: u64) -> Answer {
    let limits = InForce::of(config, &request.wish, None);
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
    clear(value, config.kind, FEWEST_PLACES);
    let id = match Parts::of(value.bytes()) {
        Ok(mut parts) => count(&mut parts, request, now_ms, &mut Changes::Whole),
        // Not reached: `clear` has just made it.
        Err(_) => ReservationId { ms: now_ms, seq: 0 },
    };
    used.and(request.recipients)
        .answer(Verdict::Allowed(id), &limits, Changes::Whole)
}

/// What both windows have counted.
#[derive(Debug, Clone, Copy)]
struct Used {
    minute: u32,
    day: u32,
}

impl Used {
    fn of(parts: &Parts<'_>, now_ms: u64) -> Self {
        Self {
            minute: parts.minute.used(parts.minute.shape.slot_of(now_ms)),
            day: parts.day.used(parts.day.shape.slot_of(now_ms)),
        }
    }

    fn and(self, recipients: u32) -> Self {
        Self {
            minute: self.minute.saturating_add(1),
            day: self.day.saturating_add(recipients),
        }
    }

    fn answer(self, verdict: Verdict, limits: &InForce, changes: Changes) -> Answer {
        Answer {
            verdict,
            minute_left: limits.per_minute.saturating_sub(self.minute),
            day_left: limits.per_day.saturating_sub(self.day),
            changes,
        }
    }
}

/// Why the call cannot be allowed, if so. Changes nothing.
fn denial(
    parts: &Parts<'_>,
    limits: &InForce,
    request: &Request,
    used: Used,
    now_ms: u64,
) -> Option<Verdict> {
    if request.recipients > limits.per_day {
        let only_the_operator = request.recipients <= limits.per_day_without_override;
        return Some(if only_the_operator {
            Verdict::Denied {
                reason: Reason::Day,
                retry_after_ms: OVERRIDE_WAIT_MS,
            }
        } else {
            Verdict::TooLarge {
                per_day: limits.per_day,
            }
        });
    }
    let mut longest: Option<(u64, Reason)> = None;
    let mut denied_until = |until: u64, reason| {
        if longest.is_none_or(|(latest, _)| until > latest) {
            longest = Some((until, reason));
        }
    };
    if used.minute >= limits.per_minute {
        let now = parts.minute.shape.slot_of(now_ms);
        denied_until(parts.minute.opens_at(now, limits.per_minute, 1), Reason::Minute);
    }
    if limits.per_day.saturating_sub(used.day) < request.recipients {
        let now = parts.day.shape.slot_of(now_ms);
        denied_until(
            parts.day.opens_at(now, limits.per_day, request.recipients),
            Reason::Day,
        );
    }
    let paused_until = parts.header.paused_until.get();
    if paused_until > now_ms {
        denied_until(paused_until, Reason::Paused);
    }
    if let Some((until, reason)) = longest {
        let retry_after_ms = until.saturating_sub(now_ms).clamp(1, MOST_RETRY_AFTER_MS);
        return Some(Verdict::Denied {
            reason,
            retry_after_ms,
        });
    }
    let places = usize::try_from(limits.concurrent?).unwrap_or(usize::MAX);
    (parts.log.open(now_ms) >= places).then_some(Verdict::Denied {
        reason: Reason::Concurrent,
        retry_after_ms: CONCURRENT_HINT_MS,
    })
}

/// Counts the message in both windows and remembers its reservation. The log has room.
fn count(parts: &mut Parts<'_>, request: &Request, now_ms: u64, changes: &mut Changes) -> ReservationId {
    let offsets = Offsets::of(parts.kind);
    let minute_slot = parts.minute.shape.slot_of(now_ms);
    let day_slot = parts.day.shape.slot_of(now_ms);

    changes.add_slots(offsets.day_ring, &parts.day.count(day_slot, request.recipients));
    changes.add_slots(offsets.minute_ring, &parts.minute.count(minute_slot, 1));
    changes.add(offsets.hot..offsets.entries);
    parts.clock.set(now_ms);

    let id = ReservationId {
        ms: now_ms,
        seq: parts.log.head.next_seq.get(),
    };
    let place = parts.log.push(Entry {
        made_at: U64::new(id.ms),
        seq: U32::new(id.seq),
        recipients: U32::new(request.recipients),
        minute_slot: U32::new(minute_slot),
        day_slot: U32::new(day_slot),
        // At most an hour.
        lease_ms: I32::new(request.lease_ms.cast_signed()),
    });
    changes.add(entry_range(offsets, place));
    parts.replicate(changes);
    id
}
