//! How Redis has been doing: whether to ask it, what to log about it.

use std::time::{Duration, Instant};

use crate::breaker::Breaker;
use crate::cause::FailOpenCause;

/// At most one warning in this time.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// How Redis has been doing, as one process sees it.
#[derive(Debug, Default)]
pub(crate) struct Health {
    breaker: Breaker,
    last_logged: Option<Instant>,
    suppressed: u64,
    outage: Option<Outage>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    failures: u64,
    told: bool,
}

/// What a failure means for the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Write it, and that so many others were kept back since the last one.
    Write { suppressed: u64 },
    /// Keep it back.
    KeepBack,
}

/// An outage that has just ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    pub(crate) outage: Duration,
    pub(crate) failures: u64,
}

impl Health {
    /// May Redis be asked now?
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        self.breaker.admits(now)
    }

    /// Redis did what it was asked to; the end of an outage is told if the outage was.
    pub(crate) fn served(&mut self, now: Instant) -> Option<Recovery> {
        self.breaker.answered();
        let outage = self.outage.take().filter(|outage| outage.told)?;
        Some(Recovery {
            outage: now.saturating_duration_since(outage.since),
            failures: outage.failures,
        })
    }

    /// It did not.
    pub(crate) fn failed(&mut self, cause: FailOpenCause, now: Instant) -> Report {
        match cause {
            FailOpenCause::CircuitOpen | FailOpenCause::NoRecipients => {}
            _ if cause.is_outage() => self.breaker.failed(now),
            _ => self.breaker.answered(),
        }
        let report = self.report(now);
        if cause.is_server_wide() {
            let outage = self.outage.get_or_insert(Outage {
                since: now,
                failures: 0,
                told: false,
            });
            outage.failures += 1;
            outage.told |= report != Report::KeepBack;
        }
        report
    }

    fn report(&mut self, now: Instant) -> Report {
        let due = self
            .last_logged
            .is_none_or(|last| now.saturating_duration_since(last) >= LOG_EVERY);
        if !due {
            self.suppressed += 1;
            return Report::KeepBack;
        }
        self.last_logged = Some(now);
        Report::Write {
            suppressed: std::mem::take(&mut self.suppressed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_warning_a_second_tells_of_those_kept_back() {
        let now = Instant::now();
        let mut health = Health::default();
        assert_eq!(
            health.failed(FailOpenCause::Timeout, now),
            Report::Write { suppressed: 0 }
        );
        for _ in 0..7 {
            assert_eq!(health.failed(FailOpenCause::Timeout, now), Report::KeepBack);
        }
        let report = health.failed(FailOpenCause::Timeout, now + SECOND);
        assert_eq!(report, Report::Write { suppressed: 7 });
    }

    #[test]
    fn the_end_of_an_outage_is_told_once_and_with_its_size() {
        let now = Instant::now();
        let mut health = Health::default();
        assert_eq!(health.served(now), None);
        health.failed(FailOpenCause::Unreachable, now);
        health.failed(FailOpenCause::CircuitOpen, now + SECOND);
        let recovery = Recovery {
            outage: 5 * SECOND,
            failures: 2,
        };
        assert_eq!(health.served(now + 5 * SECOND), Some(recovery));
        assert_eq!(health.served(now + 6 * SECOND), None);
    }

    #[test]
    fn a_redis_that_comes_and_goes_does_not_flood_the_log() {
        let now = Instant::now();
        let mut health = Health::default();
        let lines = (0..1000)
            .map(|_| {
                let warning = health.failed(FailOpenCause::Timeout, now) != Report::KeepBack;
                u32::from(warning) + u32::from(health.served(now).is_some())
            })
            .sum::<u32>();
        assert_eq!(lines, 2);
    }

    #[test]
    fn one_mailbox_with_a_foreign_value_is_no_outage_and_stops_no_other() {
        let now = Instant::now();
        let mut health = Health::default();
        for _ in 0..10 {
            health.failed(FailOpenCause::WrongType, now);
        }
        assert!(health.admits(now));
        assert_eq!(health.served(now), None);
    }
}
