//! The lines of a drawing: a report's figures over time, no more points than one can see.

use std::time::Duration;

use crate::graph::Arrival;
use crate::report::{Minute, Report};

/// More points than these are drawn together.
const MOST_POINTS: usize = 600;
const MINUTE: Duration = Duration::from_mins(1);

/// (time in the axis's unit, value).
pub(crate) type Series = Vec<(f64, f64)>;

/// The time axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    unit: &'static str,
    unit_s: f64,
    end: Duration,
}

impl Axis {
    pub fn of(report: &Report) -> Self {
        let end = report.drain().max(report.ideal_drain()).max(MINUTE);
        let (unit, unit_s) = match end.as_secs() {
            0..10_800 => ("minutes", 60.0),
            10_800..345_600 => ("hours", 3_600.0),
            _ => ("days", 86_400.0),
        };
        Self { unit, unit_s, end }
    }

    pub fn unit(&self) -> &'static str {
        self.unit
    }

    pub fn end(&self) -> f64 {
        self.at(self.end)
    }

    /// How many have come until each time; the times are in order.
    pub fn cumulative(&self, times: impl ExactSizeIterator<Item = Duration>) -> Series {
        let len = times.len();
        let step = len.div_ceil(MOST_POINTS).max(1);
        let mut series = vec![(0.0, 0.0)];
        for (nth, time) in times.enumerate() {
            if nth % step == 0 || nth + 1 == len {
                series.push((self.at(time), count(nth as u64 + 1)));
            }
        }
        series
    }

    /// A count of each minute, the mean where several are drawn together.
    pub fn a_minute(&self, report: &Report, counted: impl Fn(&Minute) -> u64) -> Series {
        self.together(report, |minutes| {
            count(minutes.iter().map(&counted).sum()) / count(minutes.len() as u64)
        })
    }

    /// A level of each minute, the last where several are drawn together.
    pub fn level(&self, report: &Report, level: impl Fn(&Minute) -> u32) -> Series {
        self.together(report, |minutes| {
            minutes.last().map_or(0.0, |minute| level(minute).into())
        })
    }

    /// The most that was within the last `span` in each minute. `amount` is what one arrival counts.
    pub fn most(&self, report: &Report, span: Duration, amount: impl Fn(&Arrival) -> u64) -> Series {
        let arrivals = &report.arrivals;
        let (mut come, mut gone, mut within) = (0, 0, 0);
        let minutes = self.together(report, <[Minute]>::len);
        let mut series = Vec::with_capacity(minutes.len());
        let mut ends = Duration::ZERO;
        for (at, together) in minutes {
            ends += MINUTE * u32::try_from(together).unwrap_or(u32::MAX);
            let mut most = within;
            while let Some(arrival) = arrivals.get(come).filter(|arrival| arrival.after < ends) {
                while arrivals[gone].after + span <= arrival.after {
                    within -= amount(&arrivals[gone]);
                    gone += 1;
                }
                within += amount(arrival);
                come += 1;
                most = most.max(within);
            }
            while gone < come && arrivals[gone].after + span <= ends {
                within -= amount(&arrivals[gone]);
                gone += 1;
            }
            series.push((at, count(most)));
        }
        series
    }

    fn together<T>(&self, report: &Report, value: impl Fn(&[Minute]) -> T) -> Vec<(f64, T)> {
        let step = report.minutes.len().div_ceil(MOST_POINTS).max(1);
        let drawn = report.minutes.chunks(step).zip((0_u64..).step_by(step));
        drawn
            .map(|(minutes, nth)| (self.at(Duration::from_mins(nth)), value(minutes)))
            .collect()
    }

    fn at(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.unit_s
    }
}

#[expect(clippy::cast_precision_loss, reason = "no run counts to 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}
