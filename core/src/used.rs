//! What both windows have counted.

use crate::changes::Changes;
use crate::layout::Parts;
use crate::limits::InForce;
use crate::verdict::{Answer, Verdict};
use crate::window::Now;

/// Messages in the minute, recipients in the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub minute: u32,
    pub day: u32,
}

impl Used {
    pub fn of(parts: &Parts<'_>, now: Now) -> Self {
        Self {
            minute: parts.minute.used(now.minute_slot),
            day: parts.day.used(now.day_slot),
        }
    }

    /// With one more message.
    pub fn and(self, recipients: u32) -> Self {
        Self {
            minute: self.minute.saturating_add(1),
            day: self.day.saturating_add(recipients),
        }
    }

    /// The answer to a call, with what is left.
    pub fn answer(self, verdict: Verdict, limits: &InForce, changes: Changes) -> Answer {
        Answer {
            verdict,
            minute_left: limits.per_minute.saturating_sub(self.minute),
            day_left: limits.per_day.saturating_sub(self.day),
            lifetime: limits.lifetime,
            changes,
        }
    }
}
