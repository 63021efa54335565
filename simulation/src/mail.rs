//! The mails of a scenario.

use std::time::Duration;

use mailrl_core::Lane;
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::scenario::{Scenario, Stream};

/// What a mail is to those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Of the normal lane.
    Normal,
    /// Of the bulk lane.
    Bulk,
    /// Of the normal lane too: the single mails that come every few minutes.
    Urgent,
}

impl Group {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 3] = [Self::Urgent, Self::Normal, Self::Bulk];

    /// The name in a report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Bulk => "bulk",
            Self::Urgent => "urgent",
        }
    }

    pub(crate) const fn lane(self) -> Lane {
        match self {
            Self::Normal | Self::Urgent => Lane::Normal,
            Self::Bulk => Lane::Bulk,
        }
    }

    const fn of(lane: Lane) -> Self {
        match lane {
            Lane::Normal => Self::Normal,
            Lane::Bulk => Self::Bulk,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Mail {
    /// When it comes in, in ms since 1970.
    pub wanted_at: u64,
    pub group: Group,
    pub recipients: u32,
    /// Whether it goes when the campaign is called off.
    pub is_backlog: bool,
    pub state: State,
}

/// How far a mail has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It waits: for its time, for a sender or for its retry time.
    Waiting,
    /// It has its reservation and is on its way to Graph.
    UnderWay,
    /// Graph has it.
    Sent,
    /// It is never sent.
    Dropped,
}

impl Mail {
    pub fn urgent(now_ms: u64) -> Self {
        Self {
            wanted_at: now_ms,
            group: Group::Urgent,
            recipients: 1,
            is_backlog: false,
            state: State::Waiting,
        }
    }
}

/// All mails but the urgent ones.
pub(crate) fn mails(scenario: &Scenario, rng: &mut StdRng) -> Vec<Mail> {
    let start = scenario.starts_at_ms;
    let mut mails = Vec::new();
    let mut add = |rng: &mut StdRng, wanted_at, lane, is_backlog| {
        mails.push(Mail {
            wanted_at,
            group: Group::of(lane),
            recipients: rng.random_range(scenario.recipients.clone()),
            is_backlog,
            state: State::Waiting,
        });
    };
    let percent = u64::from(scenario.backlog_bulk_percent);
    for nth in 0..u64::from(scenario.backlog) {
        let is_bulk = (nth + 1) * percent / 100 > nth * percent / 100;
        add(rng, start, if is_bulk { Lane::Bulk } else { Lane::Normal }, true);
    }
    for stream in &scenario.streams {
        for after in times(stream, rng) {
            add(rng, start + ms(after), stream.lane, false);
        }
    }
    for burst in &scenario.bursts {
        for _ in 0..burst.mails {
            add(rng, start + ms(burst.after), burst.lane, false);
        }
    }
    mails
}

/// When the mails of a stream come in: independent of each other (a Poisson process), for that is
/// how people write.
fn times(stream: &Stream, rng: &mut StdRng) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut seconds = 0.0;
    loop {
        let gap = -(1.0 - rng.random::<f64>()).ln() * 60.0 / stream.per_minute;
        seconds += gap;
        match Duration::try_from_secs_f64(seconds) {
            Ok(after) if after < stream.lasts => times.push(after),
            _ => return times,
        }
    }
}

/// In whole ms.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
