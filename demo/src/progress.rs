//! What is shown while mail waits: bars on a terminal, else a line every few seconds.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::say;

const REDRAW_EVERY: Duration = Duration::from_millis(200);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The mails as they stand.
pub struct Progress {
    pub campaign: Mails,
    pub singles: Mails,
    started: Instant,
    is_terminal: bool,
    last_line: Instant,
}

/// Some of the mails.
pub struct Mails {
    name: &'static str,
    sent: usize,
    failed: usize,
    all: usize,
    /// Those that wait, and until when.
    waiting: HashMap<String, Timestamp>,
    bar: ProgressBar,
}

impl Progress {
    pub fn new(campaign: usize, singles: usize) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let bars = is_terminal.then(MultiProgress::new);
        Self {
            campaign: Mails::new("campaign", campaign, bars.as_ref()),
            singles: Mails::new("single mails", singles, bars.as_ref()),
            started: Instant::now(),
            is_terminal,
            last_line: Instant::now(),
        }
    }

    /// Comes when it is time to show how they stand, and shows it.
    pub async fn tick(&mut self) {
        tokio::time::sleep(REDRAW_EVERY).await;
        self.campaign.draw();
        self.singles.draw();
        if !self.is_terminal && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.line();
        }
    }

    pub fn end(&mut self) {
        self.campaign.draw();
        self.singles.draw();
        if !self.is_terminal {
            self.line();
        }
        self.campaign.bar.abandon_with_message("");
        self.singles.bar.abandon_with_message("");
    }

    fn line(&self) {
        let seconds = self.started.elapsed().as_secs();
        // A demo that nobody watches goes on.
        let _ = say(&format!(
            "{seconds:>3} s  {}; {}",
            self.campaign.line(),
            self.singles.line()
        ));
    }
}

impl Mails {
    fn new(name: &'static str, all: usize, bars: Option<&MultiProgress>) -> Self {
        let bar = match bars {
            Some(bars) => bars.add(ProgressBar::new(all as u64)),
            None => ProgressBar::hidden(),
        };
        bar.set_prefix(name);
        if let Ok(style) = ProgressStyle::with_template("{prefix:12} {bar:30} {pos:>2}/{len} sent  {msg}") {
            bar.set_style(style);
        }
        Self {
            name,
            sent: 0,
            failed: 0,
            all,
            waiting: HashMap::new(),
            bar,
        }
    }

    pub fn sent(&mut self, id: &str) {
        self.waiting.remove(id);
        self.sent += 1;
    }

    pub fn failed(&mut self, id: &str) {
        self.waiting.remove(id);
        self.failed += 1;
    }

    pub fn deferred(&mut self, id: &str, until: Option<Timestamp>) {
        self.waiting.extend(until.map(|until| (id.to_owned(), until)));
    }

    fn draw(&self) {
        self.bar.set_position(self.sent as u64);
        self.bar.set_message(self.message());
    }

    fn line(&self) -> String {
        let message = self.message();
        let comma = if message.is_empty() { "" } else { ", " };
        format!("{}: {}/{} sent{comma}{message}", self.name, self.sent, self.all)
    }

    fn message(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("{failed} not sent "),
        };
        let now = Timestamp::now();
        match self.waiting.values().filter(|until| **until > now).min() {
            Some(next) => {
                let left = next.duration_since(now).as_secs() + 1;
                let clock = next
                    .to_zoned_datetime(TimeZone::system())
                    .strftime("%H:%M:%S")
                    .to_string();
                let waiting = self.waiting.len();
                format!("{failed}{waiting} wait, the next until {clock} ({left} s)")
            }
            None => failed,
        }
    }
}
