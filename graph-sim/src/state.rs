//! All that the simulator remembers, behind one lock that is never held across an await.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::fault::{DelayRange, Fault, FaultError, Faults, Moment, Strike, Target};
use crate::mail::{Mail, StoredMessage};
use crate::report::{MailboxReport, Report};
use crate::throttle::{Cause, Limits, MailboxThrottle, Throttled};

/// What was configured at the start.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) client: Option<(String, String)>,
    pub(crate) token_lifetime: Duration,
    pub(crate) keep_raw: bool,
}

#[derive(Clone)]
pub(crate) struct State {
    pub(crate) settings: Arc<Settings>,
    started: Instant,
    memory: Arc<Mutex<Memory>>,
}

struct Memory {
    /// How far the clock was moved ahead.
    ahead: Duration,
    random: StdRng,
    latency: DelayRange,
    faults: Faults,
    tokens: HashMap<String, Duration>,
    token_requests: u64,
    mailboxes: BTreeMap<String, Mailbox>,
    messages: Vec<StoredMessage>,
}

struct Mailbox {
    throttle: MailboxThrottle,
    report: MailboxReport,
}

impl State {
    pub(crate) fn new(settings: Settings, latency: DelayRange, seed: u64) -> Self {
        Self {
            settings: Arc::new(settings),
            started: Instant::now(),
            memory: Arc::new(Mutex::new(Memory {
                ahead: Duration::ZERO,
                random: StdRng::seed_from_u64(seed),
                latency,
                faults: Faults::default(),
                tokens: HashMap::new(),
                token_requests: 0,
                mailboxes: BTreeMap::new(),
                messages: Vec::new(),
            })),
        }
    }

    /// A request for this mailbox begins; its place is free again when the answer is dropped.
    pub(crate) fn enter(&self, mailbox: &str) -> Result<Place, Throttled> {
        self.with_mailbox(mailbox, |mailbox| {
            let entered = mailbox.throttle.enter();
            mailbox.note(entered)
        })?;
        Ok(Place {
            state: self.clone(),
            mailbox: mailbox.to_owned(),
        })
    }

    /// The fault, if any, that strikes a request which has come to this moment.
    pub(crate) fn strike(&self, at: Moment, target: Target, mailbox: &str) -> Option<Strike> {
        let memory = &mut *self.lock();
        let strike = memory.faults.strike(at, target, mailbox, &mut memory.random)?;
        if target == Target::SendMail {
            self.mailbox(memory, mailbox).report.faults += 1;
        }
        Some(strike)
    }

    pub(crate) fn rejected(&self, mailbox: &str) {
        self.with_mailbox(mailbox, |mailbox| mailbox.report.rejected += 1);
    }

    /// Accepts the mail and keeps it, if it is within the limits.
    pub(crate) fn accept(&self, mailbox: &str, mail: Mail) -> Result<(), Throttled> {
        let memory = &mut *self.lock();
        let now = self.now(memory);
        let recipients = mail.recipients.len() as u64;
        let entry = self.mailbox(memory, mailbox);
        let accepted = entry.throttle.accept(now, recipients);
        entry.note(accepted)?;
        entry.report.accepted += 1;
        entry.report.recipients += recipients;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + memory.ahead;
        memory.messages.push(StoredMessage {
            mailbox: mailbox.to_owned(),
            recipients: mail.recipients,
            subject: mail.subject,
            message_id: mail.message_id,
            accepted_at_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            size: mail.raw.len(),
            raw: self.settings.keep_raw.then_some(mail.raw),
        });
        Ok(())
    }

    /// A random delay, parted at random in what passes before the mail is accepted and after.
    pub(crate) fn latency(&self) -> (Duration, Duration) {
        let memory = &mut *self.lock();
        let whole = memory.latency.pick(&mut memory.random);
        let before = whole.mul_f64(memory.random.random());
        (before, whole.saturating_sub(before))
    }

    pub(crate) fn set_latency(&self, latency: DelayRange) -> Result<(), FaultError> {
        latency.check()?;
        self.lock().latency = latency;
        Ok(())
    }

    pub(crate) fn add_fault(&self, fault: Fault) -> Result<(), FaultError> {
        self.lock().faults.add(fault)
    }

    pub(crate) fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    pub(crate) fn advance(&self, by: Duration) {
        let memory = &mut *self.lock();
        memory.ahead = memory.ahead.saturating_add(by);
    }

    pub(crate) fn token_requested(&self) {
        self.lock().token_requests += 1;
    }

    pub(crate) fn issue_token(&self) -> String {
        let memory = &mut *self.lock();
        let token = format!("sim.{:032x}", memory.random.random::<u128>());
        let until = self.now(memory) + self.settings.token_lifetime;
        memory.tokens.insert(token.clone(), until);
        token
    }

    pub(crate) fn is_token_good(&self, token: &str) -> bool {
        let memory = &*self.lock();
        memory
            .tokens
            .get(token)
            .is_some_and(|until| *until > self.now(memory))
    }

    pub(crate) fn revoke_tokens(&self) {
        self.lock().tokens.clear();
    }

    pub(crate) fn request_id(&self) -> String {
        let id = format!("{:032x}", self.lock().random.random::<u128>());
        format!(
            "{}-{}-{}-{}-{}",
            &id[..8],
            &id[8..12],
            &id[12..16],
            &id[16..20],
            &id[20..]
        )
    }

    pub(crate) fn messages(&self, mailbox: Option<&str>) -> Vec<StoredMessage> {
        let wanted = mailbox.map(normalised);
        let of_mailbox =
            |message: &&StoredMessage| wanted.as_ref().is_none_or(|wanted| *wanted == message.mailbox);
        self.lock().messages.iter().filter(of_mailbox).cloned().collect()
    }

    pub(crate) fn report(&self) -> Report {
        let memory = &*self.lock();
        let mailboxes = memory
            .mailboxes
            .iter()
            .map(|(name, mailbox)| (name.clone(), mailbox.report()));
        Report {
            mailboxes: mailboxes.collect(),
            token_requests: memory.token_requests,
        }
    }

    fn now(&self, memory: &Memory) -> Duration {
        self.started.elapsed().saturating_add(memory.ahead)
    }

    fn with_mailbox<T>(&self, mailbox: &str, change: impl FnOnce(&mut Mailbox) -> T) -> T {
        change(self.mailbox(&mut self.lock(), mailbox))
    }

    fn mailbox<'m>(&self, memory: &'m mut Memory, mailbox: &str) -> &'m mut Mailbox {
        memory
            .mailboxes
            .entry(mailbox.to_owned())
            .or_insert_with(|| Mailbox {
                throttle: MailboxThrottle::new(self.settings.limits),
                report: MailboxReport::default(),
            })
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mailbox {
    fn note(&mut self, result: Result<(), Throttled>) -> Result<(), Throttled> {
        match result {
            Ok(()) => {}
            Err(Throttled {
                cause: Cause::Messages,
                ..
            }) => self.report.throttled_messages += 1,
            Err(Throttled {
                cause: Cause::Recipients,
                ..
            }) => self.report.throttled_recipients += 1,
            Err(Throttled {
                cause: Cause::Concurrent,
                ..
            }) => self.report.throttled_concurrent += 1,
        }
        result
    }

    fn report(&self) -> MailboxReport {
        MailboxReport {
            most_messages: self.throttle.most_messages(),
            most_recipients: self.throttle.most_recipients(),
            most_requests: self.throttle.most_requests(),
            ..self.report
        }
    }
}

/// A mailbox's name as the simulator knows it.
pub(crate) fn normalised(mailbox: &str) -> String {
    mailbox.trim().to_ascii_lowercase()
}

/// The place of one request among those that a mailbox may have at once.
pub(crate) struct Place {
    state: State,
    mailbox: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.state
            .with_mailbox(&self.mailbox, |mailbox| mailbox.throttle.leave());
    }
}
