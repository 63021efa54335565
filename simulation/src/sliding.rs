//! What a window has seen, to the millisecond: no slots, for this is how the module is judged.

use std::collections::VecDeque;

use mailrl_core::WindowKind;

/// One window, in both ways of counting.
#[derive(Debug)]
pub(crate) struct Seen {
    span_ms: u64,
    /// When it came and how much, of the last span.
    recent: VecDeque<(u64, u64)>,
    in_span: u64,
    /// The calendar window of the newest, and what came in it.
    calendar: u64,
    in_calendar: u64,
}

impl Seen {
    pub fn nothing(span_ms: u64) -> Self {
        Self {
            span_ms,
            recent: VecDeque::new(),
            in_span: 0,
            calendar: 0,
            in_calendar: 0,
        }
    }

    pub fn add(&mut self, now_ms: u64, amount: u64) {
        self.forget(now_ms);
        self.recent.push_back((now_ms, amount));
        self.in_span += amount;
        self.in_calendar += amount;
    }

    /// What came within the last span: what came at `t` counts until, but not at, `t` + span.
    pub fn in_span(&self) -> u64 {
        self.in_span
    }

    /// From when on `amount` fits under `limit`, if nothing else comes: now at the earliest.
    /// `None`: it never does.
    pub fn opens_at(&mut self, kind: WindowKind, now_ms: u64, limit: u64, amount: u64) -> Option<u64> {
        self.forget(now_ms);
        let room = limit.checked_sub(amount)?;
        match kind {
            WindowKind::Calendar if self.in_calendar > room => Some((self.calendar + 1) * self.span_ms),
            WindowKind::Calendar => Some(now_ms),
            WindowKind::Rolling => {
                let mut used = self.in_span;
                let mut opens_at = now_ms;
                for &(at, counted) in &self.recent {
                    if used <= room {
                        break;
                    }
                    used -= counted;
                    opens_at = at + self.span_ms;
                }
                Some(opens_at)
            }
        }
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some(&(at, amount)) = self.recent.front()
            && at + self.span_ms <= now_ms
        {
            self.recent.pop_front();
            self.in_span -= amount;
        }
        let calendar = now_ms / self.span_ms;
        if calendar != self.calendar {
            self.calendar = calendar;
            self.in_calendar = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_for_its_span_to_the_millisecond() {
        let mut seen = Seen::nothing(60_000);
        seen.add(59_500, 3);
        seen.add(60_000, 1);
        assert_eq!(seen.in_span(), 4);
        assert_eq!(seen.opens_at(WindowKind::Rolling, 60_001, 4, 1), Some(119_500));
        assert_eq!(seen.opens_at(WindowKind::Rolling, 60_001, 4, 4), Some(120_000));
        assert_eq!(seen.opens_at(WindowKind::Rolling, 60_001, 4, 5), None);
        assert_eq!(seen.opens_at(WindowKind::Calendar, 60_001, 4, 3), Some(60_001));
        assert_eq!(seen.opens_at(WindowKind::Calendar, 60_001, 4, 4), Some(120_000));
        seen.add(119_500, 1);
        assert_eq!(seen.in_span(), 2);
    }
}
