//! What came of a scenario.

use std::fmt;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use crate::graph::Arrival;
use crate::scenario::Scenario;
use crate::waits::Waits;

/// What came of a scenario. Its [`Display`](fmt::Display) is a table of the figures.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was played.
    pub scenario: Scenario,
    /// Mails that came in.
    pub mails: usize,
    /// Those that Graph has.
    pub sent: usize,
    /// Those that were called off.
    pub called_off: usize,
    /// Those with more recipients than a whole day may have.
    pub too_large: usize,
    /// Those that still waited when the time was over.
    pub left: usize,
    /// `RESERVE` calls.
    pub calls: u64,
    /// Those that were denied, by reason.
    pub denied: Denied,
    /// Reservations that were committed while open.
    pub committed: u64,
    /// Reservations that were released while open.
    pub released: u64,
    /// Requests that Graph refused with 429.
    pub refused: u64,
    /// How long mail waited, a row for each group that there was.
    pub waits: Vec<Waits>,
    /// What Graph took, in order.
    pub arrivals: Vec<Arrival>,
    /// When a perfect scheduler sends what was sent, from the start, in order. It knows both windows
    /// to the millisecond and sends each mail in the moment that it fits.
    pub ideal: Vec<Duration>,
    /// Each minute from the start.
    pub minutes: Vec<Minute>,
}

/// Denials by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Denied {
    /// One more message would have overrun the minute.
    pub minute: u64,
    /// The recipients would have overrun the day.
    pub day: u64,
    /// As many reservations were open as may be at once.
    pub concurrent: u64,
    /// Graph had said no shortly before.
    pub paused: u64,
}

/// One minute of a run, counted from its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minute {
    /// `RESERVE` calls.
    pub calls: u64,
    /// Those that were denied.
    pub denied: u64,
    /// The longest retry time that was given.
    pub longest_retry: Duration,
    /// Messages a minute that were in force at its end.
    pub per_minute: u32,
    /// Recipients a day that were in force at its end.
    pub per_day: u32,
}

impl Report {
    /// `RESERVE` calls for each mail that came in.
    #[must_use]
    pub fn calls_per_mail(&self) -> f64 {
        ratio(self.calls, self.mails as u64)
    }

    /// When the last mail reached Graph, from the start.
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.arrivals
            .last()
            .map_or(Duration::ZERO, |arrival| arrival.after)
    }

    /// When the last mail of a perfect scheduler does, from the start.
    #[must_use]
    pub fn ideal_drain(&self) -> Duration {
        self.ideal.last().copied().unwrap_or_default()
    }

    /// The drain time in hundredths of the ideal; none where the ideal takes no time.
    #[must_use]
    pub fn drain_percent(&self) -> Option<f64> {
        let ideal = self.ideal_drain();
        (!ideal.is_zero()).then(|| self.drain().as_secs_f64() / ideal.as_secs_f64() * 100.0)
    }

    /// The most messages that Graph took in any 60 s.
    #[must_use]
    pub fn most_in_60_s(&self) -> u64 {
        self.arrivals
            .iter()
            .map(|arrival| arrival.in_60_s)
            .max()
            .unwrap_or_default()
    }

    /// The most recipients that Graph took in any 24 h.
    #[must_use]
    pub fn most_in_24_h(&self) -> u64 {
        self.arrivals
            .iter()
            .map(|arrival| arrival.in_24_h)
            .max()
            .unwrap_or_default()
    }

    fn figures(&self) -> Table {
        let mut table = plain_table();
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        let Denied {
            minute,
            day,
            concurrent,
            paused,
        } = self.denied;
        row("mails sent", format!("{} of {}", self.sent, self.mails));
        for (name, count) in [
            ("called off", self.called_off),
            ("too large for any day", self.too_large),
            ("left", self.left),
        ] {
            if count > 0 {
                row(name, count.to_string());
            }
        }
        row(
            "RESERVE calls",
            format!("{}, {:.2} a mail", self.calls, self.calls_per_mail()),
        );
        row(
            "denied",
            format!("minute {minute}, day {day}, concurrent {concurrent}, paused {paused}"),
        );
        let percent = self.drain_percent().map_or(String::new(), |percent| {
            format!(", {percent:.1} % of the ideal {}", time(self.ideal_drain()))
        });
        row("drained after", format!("{}{percent}", time(self.drain())));
        row("most messages in any 60 s", self.most_in_60_s().to_string());
        row("most recipients in any 24 h", self.most_in_24_h().to_string());
        if self.scenario.graph_limits.is_some() {
            row("refused by Graph (429)", self.refused.to_string());
        }
        table
    }

    fn waits_table(&self) -> Table {
        let mut table = plain_table();
        table.set_header(["waited", "mails", "half", "90 %", "99 %", "longest"]);
        for waits in &self.waits {
            let Waits {
                group,
                mails,
                p50,
                p90,
                p99,
                most,
            } = waits;
            table.add_row([
                group.name().to_owned(),
                mails.to_string(),
                time(*p50),
                time(*p90),
                time(*p99),
                time(*most),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}\n\n{}", self.figures(), self.waits_table())
    }
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 calls")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// In the two largest units that it has: `6 h 38 min`, `40.0 s`.
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{:.1} s", time.as_secs_f64()),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}
