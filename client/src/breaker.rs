//! Stops asking a Redis that has just failed, so that not each mail waits for the deadline again.

use std::time::{Duration, Instant};

/// How many failures in a row it takes to stop asking.
const FAILURES_TO_OPEN: u32 = 3;

/// How often one question is let through while open.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Lets every question through while Redis answers, and one a second while it does not.
///
/// A probe moves the time of the next one when it starts: one that never comes back (its caller
/// gave up) costs a second and blocks nothing.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures_in_a_row: u32,
    next_probe: Option<Instant>,
}

impl Breaker {
    /// May a question be asked now?
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        match &mut self.next_probe {
            None => true,
            Some(at) if now >= *at => {
                *at = now + PROBE_EVERY;
                true
            }
            Some(_) => false,
        }
    }

    /// Redis answered, whatever it said.
    pub(crate) fn answered(&mut self) {
        *self = Self::default();
    }

    /// Redis did not answer.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        if self.failures_in_a_row >= FAILURES_TO_OPEN {
            self.next_probe.get_or_insert(now + PROBE_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUST_BEFORE_THE_PROBE: Duration = Duration::from_millis(999);

    fn open_at(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..FAILURES_TO_OPEN {
            assert!(breaker.admits(now));
            breaker.failed(now);
        }
        breaker
    }

    #[test]
    fn it_stays_closed_through_two_failures() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        breaker.failed(now);
        breaker.failed(now);
        assert!(breaker.admits(now));
    }

    #[test]
    fn an_answer_starts_the_count_of_failures_anew() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed(now);
            breaker.failed(now);
            breaker.answered();
        }
        assert!(breaker.admits(now));
    }

    #[test]
    fn after_three_failures_in_a_row_nobody_passes_for_a_second() {
        let now = Instant::now();
        let mut breaker = open_at(now);
        assert!(!breaker.admits(now));
        assert!(!breaker.admits(now + JUST_BEFORE_THE_PROBE));
    }

    #[test]
    fn then_one_passes_each_second() {
        let now = Instant::now();
        let mut breaker = open_at(now);
        for second in 1..5 {
            let now = now + PROBE_EVERY * second;
            assert!(breaker.admits(now));
            assert!(!breaker.admits(now));
            breaker.failed(now + JUST_BEFORE_THE_PROBE);
            assert!(!breaker.admits(now + JUST_BEFORE_THE_PROBE));
        }
    }

    #[test]
    fn late_failures_do_not_put_the_next_probe_off() {
        let now = Instant::now();
        let mut breaker = open_at(now);
        for _ in 0..1000 {
            breaker.failed(now + JUST_BEFORE_THE_PROBE);
        }
        assert!(breaker.admits(now + PROBE_EVERY));
    }

    #[test]
    fn a_probe_that_never_comes_back_costs_no_more_than_a_second() {
        let now = Instant::now();
        let mut breaker = open_at(now);
        assert!(breaker.admits(now + PROBE_EVERY));
        assert!(breaker.admits(now + 2 * PROBE_EVERY));
    }

    #[test]
    fn a_probe_that_is_answered_lets_all_through() {
        let now = Instant::now();
        let mut breaker = open_at(now);
        assert!(breaker.admits(now + PROBE_EVERY));
        breaker.answered();
        assert!(breaker.admits(now + PROBE_EVERY));
        assert!(breaker.admits(now + PROBE_EVERY));
    }
}
