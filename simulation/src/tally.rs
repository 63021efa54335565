//! What is counted on the way.

use std::time::Duration;

use mailrl_core::{Config, Reason};

use crate::mail::Group;
use crate::report::{Denied, Minute};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub calls: u64,
    pub denied: Denied,
    pub committed: u64,
    pub released: u64,
    pub called_off: usize,
    pub too_large: usize,
    /// Waits in ms of those that Graph has.
    waits: Vec<(Group, u64)>,
    pub minutes: Vec<Minute>,
}

impl Tally {
    /// The time has come to so many ms after the start, and these limits are in force.
    pub fn pass(&mut self, after_ms: u64, config: &Config) {
        let nth = usize::try_from(after_ms / 60_000).unwrap_or(usize::MAX);
        if nth >= self.minutes.len() {
            let last = self.minutes.last().copied().unwrap_or_default();
            let quiet = Minute {
                per_minute: last.per_minute,
                per_day: last.per_day,
                ..Minute::default()
            };
            self.minutes.resize(nth + 1, quiet);
        }
        let minute = self.minute();
        minute.per_minute = config.per_minute;
        minute.per_day = config.per_day;
    }

    /// The minute that the time has come to.
    fn minute(&mut self) -> &mut Minute {
        if self.minutes.is_empty() {
            self.minutes.push(Minute::default());
        }
        let last = self.minutes.len() - 1;
        &mut self.minutes[last]
    }

    pub fn called(&mut self) {
        self.calls += 1;
        self.minute().calls += 1;
    }

    pub fn denied(&mut self, reason: Reason, retry_after_ms: u64) {
        let count = match reason {
            Reason::Minute => &mut self.denied.minute,
            Reason::Day => &mut self.denied.day,
            Reason::Concurrent => &mut self.denied.concurrent,
            Reason::Paused => &mut self.denied.paused,
        };
        *count += 1;
        let minute = self.minute();
        minute.denied += 1;
        minute.longest_retry = minute.longest_retry.max(Duration::from_millis(retry_after_ms));
    }

    pub fn waited(&mut self, group: Group, wait_ms: u64) {
        self.waits.push((group, wait_ms));
    }

    pub fn waits(&self, group: Group) -> Vec<u64> {
        let of_group = self.waits.iter().filter(|(of, _)| *of == group);
        of_group.map(|(_, wait_ms)| *wait_ms).collect()
    }
}
