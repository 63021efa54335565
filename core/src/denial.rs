//! Why a message cannot go out now, and when it can.

use crate::layout::Parts;
use crate::limits::{Config, InForce};
use crate::turns::{Pace, Wait};
use crate::used::Used;
use crate::verdict::{CONCURRENT_HINT_MS, MOST_RETRY_AFTER_MS, OVERRIDE_WAIT_MS, Reason, Request, Verdict};
use crate::window::Now;

/// Why the call cannot be allowed, if so. Changes nothing but the queue that it takes a turn in.
pub(crate) fn denial(
    parts: &mut Parts<'_>,
    config: &Config,
    limits: &InForce,
    request: &Request,
    used: Used,
    now: Now,
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
    if let Some((reason, opens_at)) = longest_wait(parts, limits, request, used, now) {
        let at = if config.pacing {
            turn(parts, limits, request, reason, opens_at, now.ms)
        } else {
            opens_at
        };
        let retry_after_ms = at.saturating_sub(now.ms).clamp(1, MOST_RETRY_AFTER_MS);
        return Some(Verdict::Denied {
            reason,
            retry_after_ms,
        });
    }
    let places = usize::try_from(limits.concurrent?).unwrap_or(usize::MAX);
    // Counts those whose lease is over only where it makes a difference.
    let is_taken = parts.log.not_closed() >= places && parts.log.open(now.ms) >= places;
    is_taken.then_some(Verdict::Denied {
        reason: Reason::Concurrent,
        retry_after_ms: CONCURRENT_HINT_MS,
    })
}

/// What keeps the caller waiting longest, and until when (ms since 1970).
fn longest_wait(
    parts: &Parts<'_>,
    limits: &InForce,
    request: &Request,
    used: Used,
    now: Now,
) -> Option<(Reason, u64)> {
    let mut longest = None;
    let mut wait = |reason, until: u64| {
        if longest.is_none_or(|(_, latest)| until > latest) {
            longest = Some((reason, until));
        }
    };
    if used.minute >= limits.per_minute {
        let opens_at = parts.minute.opens_at(now.minute_slot, limits.per_minute, 1);
        wait(Reason::Minute, opens_at);
    }
    if limits.per_day.saturating_sub(used.day) < request.recipients {
        let opens_at = parts
            .day
            .opens_at(now.day_slot, limits.per_day, request.recipients);
        wait(Reason::Day, opens_at);
    }
    let paused_until = parts.header.paused_until.get();
    if paused_until > now.ms {
        wait(Reason::Paused, paused_until);
    }
    longest
}

/// The caller's own turn in the queue of what it waits for. Those who are paused queue up for the
/// minute from the end of the pause.
fn turn(
    parts: &mut Parts<'_>,
    limits: &InForce,
    request: &Request,
    reason: Reason,
    opens_at: u64,
    now_ms: u64,
) -> u64 {
    let header = &mut *parts.header;
    let (lanes, pace, amount) = match reason {
        Reason::Day => (
            &mut header.day_turns,
            Pace::of(parts.day.shape, limits.per_day),
            request.recipients,
        ),
        _ => (
            &mut header.minute_turns,
            Pace::of(parts.minute.shape, limits.per_minute),
            1,
        ),
    };
    let wait = Wait {
        amount,
        opens_at,
        is_paused: reason == Reason::Paused,
    };
    lanes.of(request.lane).take(pace, wait, now_ms)
}
