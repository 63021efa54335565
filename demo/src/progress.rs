//! What is shown while mail waits: bars on a terminal, else a line every few seconds.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::say;

const REDRAW_EVERY: Duration = Duration::from_millis(200);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The two senders as they stand.
pub struct Progress {
    senders: Vec<Sender>,
    started: Instant,
    /// On a terminal.
    bars: Option<MultiProgress>,
    last_line: Instant,
}

struct Sender {
    sent: usize,
    failed: usize,
    all: usize,
    waits_until: Option<Timestamp>,
    bar: ProgressBar,
}

impl Progress {
    pub fn new(counts: [usize; 2]) -> Self {
        let bars = io::stderr().is_terminal().then(MultiProgress::new);
        let style = ProgressStyle::with_template("{prefix} {bar:30} {pos:>2}/{len} sent  {msg}");
        let senders = counts.into_iter().zip(1..).map(|(all, number)| {
            let bar = match &bars {
                Some(bars) => bars.add(ProgressBar::new(all as u64)),
                None => ProgressBar::hidden(),
            };
            bar.set_prefix(format!("sender {number}"));
            if let Ok(style) = &style {
                bar.set_style(style.clone());
            }
            Sender {
                sent: 0,
                failed: 0,
                all,
                waits_until: None,
                bar,
            }
        });
        Self {
            senders: senders.collect(),
            started: Instant::now(),
            bars,
            last_line: Instant::now(),
        }
    }

    /// A mail of this sender has come to its end.
    pub fn done(&mut self, sender: usize, is_sent: bool) {
        if let Some(sender) = self.senders.get_mut(sender) {
            sender.waits_until = None;
            if is_sent {
                sender.sent += 1;
            } else {
                sender.failed += 1;
            }
        }
        self.draw();
    }

    /// A mail of this sender has to wait for so long.
    pub fn waits(&mut self, sender: usize, wait: Duration) {
        let until = SignedDuration::try_from(wait)
            .ok()
            .and_then(|wait| Timestamp::now().checked_add(wait).ok());
        if let Some(sender) = self.senders.get_mut(sender) {
            sender.waits_until = until;
        }
        self.draw();
    }

    /// Comes when it is time to show how they stand, and shows it.
    pub async fn tick(&mut self) {
        tokio::time::sleep(REDRAW_EVERY).await;
        self.draw();
        if self.bars.is_none() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.line();
        }
    }

    pub fn end(&mut self) {
        if self.bars.is_none() {
            self.line();
        }
        for sender in &self.senders {
            sender.bar.abandon_with_message("");
        }
    }

    fn draw(&self) {
        for sender in &self.senders {
            sender.bar.set_position(sender.sent as u64);
            sender.bar.set_message(sender.message());
        }
    }

    fn line(&self) {
        let senders = self.senders.iter().zip(1..).map(|(sender, number)| {
            let message = sender.message();
            let comma = if message.is_empty() { "" } else { ", " };
            format!(
                "sender {number}: {}/{} sent{comma}{message}",
                sender.sent, sender.all
            )
        });
        let senders: Vec<_> = senders.collect();
        // A demo that nobody watches goes on.
        let _ = say(&format!(
            "{:>3} s  {}",
            self.started.elapsed().as_secs(),
            senders.join("; ")
        ));
    }
}

impl Sender {
    fn message(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("{failed} not sent "),
        };
        match self.waits_until {
            Some(until) if until > Timestamp::now() => {
                let left = until.duration_since(Timestamp::now()).as_secs() + 1;
                let clock = until
                    .to_zoned_datetime(TimeZone::system())
                    .strftime("%H:%M:%S")
                    .to_string();
                format!("{failed}the next waits until {clock} ({left} s)")
            }
            _ => failed,
        }
    }
}
