//! What Graph sees of a mailbox, and refuses if it is told to.

use std::time::Duration;

use mailrl_core::WindowKind;

use crate::sliding::Seen;

pub(crate) const MINUTE_MS: u64 = 60_000;
pub(crate) const DAY_MS: u64 = 86_400_000;

/// What Graph refuses with 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphLimits {
    /// Messages in any 60 s.
    pub messages: u32,
    /// Recipients in any 24 h.
    pub recipients: u32,
}

impl Default for GraphLimits {
    /// Microsoft's: "Exchange Online limits", sending limits.
    fn default() -> Self {
        Self {
            messages: 30,
            recipients: 10_000,
        }
    }
}

/// A mail that Graph took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, from the start.
    pub after: Duration,
    /// Its recipients.
    pub recipients: u32,
    /// The messages of the 60 s that end with it, itself included.
    pub in_60_s: u64,
    /// The recipients of the 24 h that end with it, its own included.
    pub in_24_h: u64,
}

#[derive(Debug)]
pub(crate) struct Graph {
    limits: Option<GraphLimits>,
    minute: Seen,
    day: Seen,
    pub arrivals: Vec<Arrival>,
    pub refused: u64,
}

impl Graph {
    pub fn new(limits: Option<GraphLimits>) -> Self {
        Self {
            limits,
            minute: Seen::nothing(MINUTE_MS),
            day: Seen::nothing(DAY_MS),
            arrivals: Vec::new(),
            refused: 0,
        }
    }

    /// Takes a mail, or refuses it with a Retry-After in ms: whole seconds, at least one.
    pub fn post(&mut self, now_ms: u64, after: Duration, recipients: u32) -> Result<(), u32> {
        let amount = u64::from(recipients);
        if let Some(limits) = self.limits {
            let opens_at = |seen: &mut Seen, limit: u32, amount| {
                seen.opens_at(WindowKind::Rolling, now_ms, limit.into(), amount)
                    .unwrap_or(now_ms + DAY_MS)
            };
            let opens_at = opens_at(&mut self.minute, limits.messages, 1).max(opens_at(
                &mut self.day,
                limits.recipients,
                amount,
            ));
            if opens_at > now_ms {
                self.refused += 1;
                let seconds = (opens_at - now_ms).div_ceil(1_000);
                return Err(u32::try_from(seconds * 1_000).unwrap_or(u32::MAX));
            }
        }
        self.minute.add(now_ms, 1);
        self.day.add(now_ms, amount);
        self.arrivals.push(Arrival {
            after,
            recipients,
            in_60_s: self.minute.in_span(),
            in_24_h: self.day.in_span(),
        });
        Ok(())
    }
}
