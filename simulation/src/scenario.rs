//! What is played.

use std::ops::RangeInclusive;
use std::time::Duration;

use mailrl_core::{BadState, Config, Lane, MOST_LEASE_MS};

use crate::change::{Change, Planned};
use crate::graph::GraphLimits;
use crate::spread::Spread;

/// What is sent from one mailbox, under which limits and by whom. Times are counted from its start.
///
/// The default is a campaign of 10,000 mails to one recipient each, that all wait at the start,
/// under the module's defaults but for the day's limit, which is out of the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// When it starts, in ms since 1970: calendar windows are aligned to it.
    pub starts_at_ms: u64,
    /// Mails that wait at the start: the campaign.
    pub backlog: u32,
    /// How many of those are bulk mail, in hundredths, evenly among the others.
    pub backlog_bulk_percent: u32,
    /// Recipients of a mail, drawn evenly.
    pub recipients: RangeInclusive<u32>,
    /// Mail that comes in while the backlog waits.
    pub streams: Vec<Stream>,
    /// Mails that come in together.
    pub bursts: Vec<Burst>,
    /// A mail to one recipient in the normal lane, again and again, as long as other mail waits.
    pub urgent_every: Option<Duration>,
    /// The module's configuration: limits, window kind, pacing and what bulk mail may use.
    pub config: Config,
    /// Open reservations at once (`CONCURRENT`); none: not asked for.
    pub concurrent: Option<u32>,
    /// For how long a reservation is open if nobody commits it.
    pub lease: Duration,
    /// What a mail adds to the retry time that it was given.
    pub spread: Spread,
    /// The pods, each with its number of senders. A sender has one mail at a time, from `RESERVE`
    /// until `COMMIT`.
    pub pods: Vec<u32>,
    /// How long a mail takes from `RESERVE` until Graph has it, drawn evenly.
    pub transit: RangeInclusive<Duration>,
    /// How long its answer takes, from Graph to `COMMIT`, drawn evenly.
    pub answer: RangeInclusive<Duration>,
    /// Whether senders commit. If not, a reservation ends with its lease.
    pub commits: bool,
    /// What Graph refuses with 429; none: it only looks on.
    pub graph_limits: Option<GraphLimits>,
    /// When the campaign is called off: what is left of the backlog never comes again.
    pub called_off_after: Option<Duration>,
    /// Changes of the module's configuration.
    pub changes: Vec<Planned>,
    /// When to stop though mail is left.
    pub stops_after: Duration,
    /// Everything that is drawn is drawn from it.
    pub seed: u64,
}

/// Mail that comes in by and by, at random times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Mails a minute, on average.
    pub per_minute: f64,
    /// For how long, from the start.
    pub lasts: Duration,
    /// Its lane.
    pub lane: Lane,
}

/// Mails that come in together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// When.
    pub after: Duration,
    /// How many.
    pub mails: u32,
    /// Their lane.
    pub lane: Lane,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            // A Friday, 20 s past 08:00 UTC.
            starts_at_ms: 1_800_000_020_000,
            backlog: 10_000,
            backlog_bulk_percent: 0,
            recipients: 1..=1,
            streams: Vec::new(),
            bursts: Vec::new(),
            urgent_every: None,
            config: Config {
                per_day: u32::MAX,
                ..Config::default()
            },
            concurrent: None,
            lease: Duration::from_mins(2),
            spread: Spread::NONE,
            pods: vec![10, 10],
            transit: Duration::ZERO..=Duration::ZERO,
            answer: Duration::ZERO..=Duration::ZERO,
            commits: true,
            graph_limits: None,
            called_off_after: None,
            changes: Vec::new(),
            stops_after: Duration::from_hours(60 * 24),
            seed: 0,
        }
    }
}

/// A scenario that cannot be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// No pod has a sender.
    #[error("nobody sends: give at least one pod with at least one sender")]
    NoSender,
    /// A limit of zero.
    #[error("{0} is 0: a limit is at least 1")]
    ZeroLimit(&'static str),
    /// A share outside of its hundred.
    #[error("{0} is out of range: give 0 to 100 percent (the module's bulk share from 1)")]
    Percent(&'static str),
    /// A range that ends before it begins, or recipients from 0.
    #[error("{0} is not a range from low to high (recipients from 1)")]
    Range(&'static str),
    /// Not a number of mails a minute.
    #[error("a stream's mails a minute are not a number from 0 to 1,000,000")]
    Stream,
    /// Urgent mails without end at one time.
    #[error("urgent mails are less than 1 ms apart")]
    Urgent,
    /// A lease that the command does not take.
    #[error("the lease is not from 1 ms to 1 h")]
    Lease,
    /// Not reached: the value is made by the code that reads it.
    #[error("the mailbox's value: {0}")]
    Value(#[from] BadState),
}

impl Scenario {
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        if self.pods.iter().all(|senders| *senders == 0) {
            return Err(ScenarioError::NoSender);
        }
        self.check_limits()?;
        for (is_wrong, name) in [
            (self.backlog_bulk_percent > 100, "the backlog's bulk share"),
            (!(1..=100).contains(&self.config.bulk_share), "the bulk share"),
        ] {
            if is_wrong {
                return Err(ScenarioError::Percent(name));
            }
        }
        for (is_wrong, name) in [
            (
                self.recipients.is_empty() || *self.recipients.start() == 0,
                "recipients",
            ),
            (self.transit.is_empty(), "transit"),
            (self.answer.is_empty(), "answer"),
        ] {
            if is_wrong {
                return Err(ScenarioError::Range(name));
            }
        }
        if self
            .streams
            .iter()
            .any(|stream| !(0.0..=1e6).contains(&stream.per_minute))
        {
            return Err(ScenarioError::Stream);
        }
        if self.urgent_every.is_some_and(|every| every.as_millis() == 0) {
            return Err(ScenarioError::Urgent);
        }
        if !(1..=u128::from(MOST_LEASE_MS)).contains(&self.lease.as_millis()) {
            return Err(ScenarioError::Lease);
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), ScenarioError> {
        let mut minute = vec![self.config.per_minute];
        let mut day = vec![self.config.per_day];
        for planned in &self.changes {
            match planned.change {
                Change::PerMinute(limit) => minute.push(limit),
                Change::PerDay(limit) => day.push(limit),
                Change::Kind(_) | Change::Pacing(_) => {}
            }
        }
        if let Some(limits) = self.graph_limits {
            minute.push(limits.messages);
            day.push(limits.recipients);
        }
        for (limits, name) in [
            (minute, "messages a minute"),
            (day, "recipients a day"),
            (self.concurrent.into_iter().collect(), "sends at once"),
        ] {
            if limits.contains(&0) {
                return Err(ScenarioError::ZeroLimit(name));
            }
        }
        Ok(())
    }
}
