//! Asks Redis whether a mail may go out, and lets it out when Redis does not answer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use redis::{Cmd, RedisResult, Value};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cause::FailOpenCause;
use crate::config::{ConfigError, RateLimiterConfig};
use crate::counts::{Counters, Counts};
use crate::decision::{Decision, FailOpen, Reservation};
use crate::health::{Health, Report};
use crate::lane::Lane;
use crate::late::Question;
use crate::protocol::{self, ReserveOptions};
use crate::servers::Servers;
use crate::{Limits, Mailbox, events};

/// A timer knows whole milliseconds only, and fires up to two of them late.
const TIMER_ROUNDING: Duration = Duration::from_millis(2);

/// Asks Redis whether a mail may go out: one for a process, cheap to clone, one connection (in a
/// cluster one to each primary).
///
/// No call takes longer than the configured deadline, whatever Redis does. After three failures in a
/// row it answers [`Decision::FailOpen`] at once and asks Redis only once a second, until Redis
/// answers again.
///
/// ```no_run
/// use mailrl_client::{Decision, Limits, MailRateLimiter, Mailbox, RateLimiterConfig};
///
/// # async fn send() -> bool { true }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = MailRateLimiter::new(RateLimiterConfig::new("redis://127.0.0.1"))?;
/// let mailbox = Mailbox::new("orders@example.com");
/// match limiter.check_and_reserve(&mailbox, 1, &Limits::default()).await {
///     Decision::Allowed(reservation) if send().await => { limiter.commit(&reservation).await?; }
///     Decision::Allowed(reservation) => { limiter.release(&reservation).await?; }
///     Decision::Denied(denial) => println!("again in {:?}", denial.retry_after),
///     Decision::TooLarge(error) => println!("never: {error}"),
///     Decision::FailOpen(_) => { send().await; }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MailRateLimiter {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Servers,
    health: Mutex<Health>,
    counters: Counters,
    deadline: Duration,
    /// How long Redis is waited for, so that the deadline holds.
    patience: Duration,
    concurrent: Option<u32>,
    lease: Duration,
    /// How many settlements are under way in the background.
    unsettled: watch::Sender<usize>,
}

impl MailRateLimiter {
    /// Checks the configuration. It does not connect: a process can start while Redis is down.
    pub fn new(config: RateLimiterConfig) -> Result<Self, ConfigError> {
        let settings = config.validate()?;
        Ok(Self {
            shared: Arc::new(Shared {
                servers: settings.servers,
                health: Mutex::default(),
                counters: Counters::default(),
                deadline: settings.deadline,
                patience: settings
                    .deadline
                    .saturating_sub(TIMER_ROUNDING)
                    .max(Duration::from_millis(1)),
                concurrent: settings.concurrent,
                lease: settings.lease,
                unsettled: watch::Sender::new(0),
            }),
        })
    }

    /// In one atomic step: is there room for one more message to so many recipients? If so, it is
    /// reserved.
    ///
    /// An answer that comes too late still counts: if the mail went out uncounted meanwhile, its
    /// reservation is committed; if the caller dropped the future, it is released. An answer that
    /// never comes (the connection broke) leaves a reservation that ends with its lease.
    pub async fn check_and_reserve(&self, mailbox: &Mailbox, recipients: u32, limits: &Limits) -> Decision {
        let decision = self.reserve(mailbox, recipients, limits, Lane::Normal).await;
        events::decided(mailbox, recipients, &decision);
        decision
    }

    /// As [`Self::check_and_reserve`], for mail that can wait (campaigns, newsletters): it leaves the
    /// last part of every window to other mail.
    pub async fn check_and_reserve_bulk(
        &self,
        mailbox: &Mailbox,
        recipients: u32,
        limits: &Limits,
    ) -> Decision {
        let decision = self.reserve(mailbox, recipients, limits, Lane::Bulk).await;
        events::decided(mailbox, recipients, &decision);
        decision
    }

    /// Gives a reservation back, since its mail certainly did not go out: true if it was still open.
    pub async fn release(&self, reservation: &Reservation) -> Result<bool, FailOpenCause> {
        let command = protocol::release(reservation);
        let was_open = self
            .ask(&reservation.mailbox, &command, protocol::read_settled)
            .await?;
        events::released(reservation, was_open);
        Ok(was_open)
    }

    /// Says that the mail is out: its budget stays used, its place among the concurrent sends comes
    /// free. True if the reservation was still open.
    pub async fn commit(&self, reservation: &Reservation) -> Result<bool, FailOpenCause> {
        let command = protocol::commit(reservation);
        self.ask(&reservation.mailbox, &command, protocol::read_settled)
            .await
    }

    /// Pauses the mailbox for everybody, for at most 24 h; zero ends a pause. Answers until when it
    /// is paused, which is later than asked for if a longer pause was there already.
    pub async fn pause(&self, mailbox: &Mailbox, length: Duration) -> Result<SystemTime, FailOpenCause> {
        let command = protocol::pause(mailbox, length);
        self.ask(mailbox, &command, protocol::read_pause).await
    }

    /// Waits until all commits and releases that go on in the background are done: call it before a
    /// process ends. They take a few milliseconds, and about 3 s at most if Redis is away.
    pub async fn flush(&self) {
        let mut unsettled = self.shared.unsettled.subscribe();
        // Fails only if the sender is gone, and `self` holds it.
        let _ = unsettled.wait_for(|count| *count == 0).await;
    }

    /// How often each kind of decision was given so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counters.read()
    }

    /// [`Self::check_and_reserve`] without the log entry of a denial.
    pub(crate) async fn reserve(
        &self,
        mailbox: &Mailbox,
        recipients: u32,
        limits: &Limits,
        lane: Lane,
    ) -> Decision {
        let decision = self
            .try_reserve(mailbox, recipients, limits, lane)
            .await
            .unwrap_or_else(Decision::FailOpen);
        self.shared.counters.count(&decision);
        decision
    }

    async fn try_reserve(
        &self,
        mailbox: &Mailbox,
        recipients: u32,
        limits: &Limits,
        lane: Lane,
    ) -> Result<Decision, FailOpen> {
        if recipients == 0 {
            let failure = FailOpen::new(
                FailOpenCause::NoRecipients,
                "nothing to reserve for a mail without recipients",
            );
            return self.report(mailbox, Err(failure));
        }
        self.admit(mailbox)?;
        let options = ReserveOptions {
            limits: *limits,
            concurrent: self.shared.concurrent,
            lease: self.shared.lease,
            lane,
        };
        let command = protocol::reserve(mailbox, recipients, &options);
        let question = Question::ask(self.clone(), mailbox.clone(), command);
        let answer = question.answer_within(self.shared.patience).await;
        self.report(mailbox, answer)
    }

    /// Asks a question whose late answer does not matter.
    async fn ask<T>(
        &self,
        mailbox: &Mailbox,
        command: &Cmd,
        read: impl FnOnce(RedisResult<Value>) -> Result<T, FailOpen>,
    ) -> Result<T, FailOpenCause> {
        self.admit(mailbox).map_err(|failure| failure.cause)?;
        let answer = match timeout(self.shared.patience, self.query(mailbox, command)).await {
            Ok(answer) => read(answer),
            Err(_) => Err(self.unanswered(mailbox)),
        };
        self.report(mailbox, answer).map_err(|failure| failure.cause)
    }

    fn admit(&self, mailbox: &Mailbox) -> Result<(), FailOpen> {
        if self.health().admits(Instant::now()) {
            return Ok(());
        }
        let failure = FailOpen::new(
            FailOpenCause::CircuitOpen,
            "Redis failed a moment ago, it is asked again within a second",
        );
        self.report(mailbox, Err(failure))
    }

    pub(crate) async fn query(&self, mailbox: &Mailbox, command: &Cmd) -> RedisResult<Value> {
        self.shared.servers.query(mailbox, command).await
    }

    /// What to answer when the deadline has passed.
    pub(crate) fn unanswered(&self, mailbox: &Mailbox) -> FailOpen {
        self.shared.servers.unanswered(mailbox);
        let error = format!("no answer within {:?}", self.shared.deadline);
        FailOpen::new(FailOpenCause::Timeout, error)
    }

    /// Takes note of how Redis does, and logs what is worth it.
    pub(crate) fn report<T>(&self, mailbox: &Mailbox, answer: Result<T, FailOpen>) -> Result<T, FailOpen> {
        let now = Instant::now();
        match &answer {
            Ok(_) => {
                let recovery = self.health().served(now);
                recovery.iter().for_each(events::recovered);
            }
            Err(failure) => {
                let report = self.health().failed(failure.cause, now);
                if let Report::Write { suppressed } = report {
                    events::redis_error(mailbox, failure, suppressed);
                }
            }
        }
        answer
    }

    pub(crate) fn lease(&self) -> Duration {
        self.shared.lease
    }

    pub(crate) fn unsettled(&self) -> &watch::Sender<usize> {
        &self.shared.unsettled
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.shared.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MailRateLimiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MailRateLimiter")
            .field("deadline", &self.shared.deadline)
            .field("concurrent", &self.shared.concurrent)
            .field("lease", &self.shared.lease)
            .finish_non_exhaustive()
    }
}
