//! Turns: retry times that do not collide.
//!
//! Everybody who is told "when the window opens" comes back at the same moment, and nearly all are
//! denied again. So each denial takes a number in a queue, and its retry time is its own turn. Turns
//! are advice: they neither free budget nor take any, and who comes without one is not asked for it.
//!
//! A queue is kept per window and lane. Turns are as far apart as the window lets messages through:
//! its covered span divided by the lane's limit. A queue is forgotten once those who hold turns stop
//! coming, for a campaign that was called off must not push later mail into the evening. That its
//! window has room says nothing: a burst that leaves a rolling window at once makes room too.

use crate::layout::Turns;
use crate::window::Shape;

/// What somebody who is denied waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// What is needed of the window.
    pub amount: u32,
    /// When there is room for it if nobody else waits, in ms since 1970.
    pub opens_at: u64,
    /// Whether nobody at all is allowed before.
    pub is_paused: bool,
}

/// A window as a queue sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The time that the window covers, in ms.
    pub span_ms: u64,
    /// What the lane may use of it.
    pub limit: u32,
}

impl Pace {
    pub fn of(shape: Shape, limit: u32) -> Self {
        Self {
            span_ms: shape.slot_ms.saturating_mul(shape.slots.into()),
            limit,
        }
    }

    /// How long the window needs to let this much through, in µs: the limit may be higher than the
    /// span has milliseconds.
    fn step_us(self, amount: u32) -> u64 {
        let span_us = self.span_ms.saturating_mul(1_000);
        span_us
            .saturating_mul(amount.into())
            .checked_div(self.limit.into())
            .unwrap_or(span_us)
    }
}

impl Turns {
    /// Takes the next turn. Gives its time, in ms since 1970.
    pub fn take(&mut self, pace: Pace, wait: Wait, now_ms: u64) -> u64 {
        self.look_after(pace, wait.opens_at, now_ms);
        let opens_us = wait.opens_at.saturating_mul(1_000);
        let is_first = self.is_empty();
        let turn_us = if is_first {
            opens_us
        } else {
            opens_us.max(self.last_us.get().saturating_add(pace.step_us(wait.amount)))
        };
        // The first period begins when the first of the queue can be allowed, and who could not come
        // in a pause has not stopped coming.
        if is_first || wait.is_paused && self.period_start.get() < wait.opens_at {
            self.period_start.set(wait.opens_at);
            self.allowed.set(0);
        }
        self.last_us.set(turn_us);
        turn_us.div_ceil(1_000)
    }

    /// Notes that `amount` was allowed in this lane.
    pub fn note_allowed(&mut self, pace: Pace, amount: u32, now_ms: u64) {
        if !self.is_empty() {
            self.look_after(pace, now_ms, now_ms);
            self.allowed.set(self.allowed.get().saturating_add(amount));
        }
    }

    /// Moves the queue by a step of the clock, in ms.
    pub fn date_back(&mut self, step_ms: u64) {
        self.last_us
            .set(self.last_us.get().saturating_sub(step_ms.saturating_mul(1_000)));
        self.period_start
            .set(self.period_start.get().saturating_sub(step_ms));
    }

    fn is_empty(&self) -> bool {
        self.last_us.get() == 0
    }

    /// Forgets the queue once its last turn has passed, or those who hold turns have stopped coming:
    /// in a whole span fewer than half of the limit was allowed, or nobody came for two. So it does
    /// if the queue begins long after somebody can be allowed (at `opens_at`): it is that of a pause
    /// which was ended early.
    fn look_after(&mut self, pace: Pace, opens_at: u64, now_ms: u64) {
        let period_end = self.period_start.get().saturating_add(pace.span_ms);
        let has_passed = self.last_us.get() <= now_ms.saturating_mul(1_000);
        let few_came = now_ms >= period_end && self.allowed.get() < pace.limit.div_ceil(2);
        let nobody_came = now_ms >= period_end.saturating_add(pace.span_ms);
        let begins_late = self.period_start.get() > opens_at.saturating_add(pace.span_ms);
        if has_passed || few_came || nobody_came || begins_late {
            self.last_us.set(0);
        } else if now_ms >= period_end {
            self.period_start.set(period_end);
            self.allowed.set(0);
        }
    }
}
