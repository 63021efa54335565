//! The questions to Redis: each look is bounded, and none holds Redis up.

use std::time::{Duration, Instant};

use mailrl_client::Mailbox;
use mailrl_mailer::queue::{QUEUE, Records};

use super::find::Found;
use super::queued::{MOST_MESSAGES, Waiting};
use super::{MailboxView, Overview, Standing};
use crate::args::RecordsPlace;
use crate::config::{Config, ConfigError};
use crate::server::{Command, Server, Trouble};
use crate::status::Status;
use crate::words::grouped;

const PREFIX: &[u8] = b"mailrl:";
const PATTERN: &str = "mailrl:*";

/// The most mailboxes that are shown.
const MOST_MAILBOXES: usize = 10_000;
/// How many keys Redis looks at in one step, and how many steps a look takes: 10,000 keys.
const STEP: usize = 500;
const STEPS: usize = 20;
/// How many are asked for in one round trip.
const BATCH: usize = 200;
/// How often the queue is looked at. It costs more than the mailboxes do, and moves slower.
const QUEUE_EVERY: Duration = Duration::from_secs(5);

/// Looks at all mailboxes, again and again.
pub struct Poller {
    found: Found,
    records: Records,
    waiting: Waiting,
    waiting_trouble: Option<String>,
    last_queue_look: Option<Instant>,
}

impl Poller {
    /// It does not connect yet.
    pub fn new(config: &Config, place: &RecordsPlace) -> Result<Self, ConfigError> {
        // It checks the queue's address as a limiter would its own.
        let (url, prefix) = config.records(place);
        mailrl_client::MailRateLimiter::new(mailrl_client::RateLimiterConfig::new(&url))?;
        let client = mailrl_client::open_redis(url.as_str()).map_err(|error| {
            mailrl_client::ConfigError::RedisUrl {
                reason: error.to_string(),
            }
        })?;
        Ok(Self {
            found: Found::default(),
            records: Records::new(client, &prefix, QUEUE),
            waiting: Waiting::default(),
            waiting_trouble: None,
            last_queue_look: None,
        })
    }

    /// One look.
    pub async fn poll(&mut self, server: &Server) -> Result<Overview, Trouble> {
        let scanned = self.scan(server).await;
        if scanned.is_err() {
            self.found.restart();
        }
        scanned?;
        self.look_at_queue().await;
        let mut keys = self.found.keys(MOST_MAILBOXES);
        for name in self.waiting.by_mailbox.keys() {
            if keys.len() < MOST_MAILBOXES {
                keys.insert(Mailbox::new(name).key().into());
            }
        }
        let keys: Vec<_> = keys.into_iter().collect();
        let mut mailboxes = Vec::with_capacity(keys.len());
        for batch in keys.chunks(BATCH) {
            let asked: Vec<_> = batch.iter().map(Vec::as_slice).collect();
            let answers = server.ask_each(Command::Status, &asked, Status::read).await?;
            for (key, answer) in batch.iter().zip(answers) {
                mailboxes.push(self.view(key, answer));
            }
        }
        Ok(Overview {
            mailboxes,
            missing: self.missing(),
        })
    }

    /// Scans on, a whole pass at most.
    async fn scan(&mut self, server: &Server) -> Result<(), Trouble> {
        for _ in 0..STEPS {
            let (cursor, keys) = server.scan(self.found.cursor(), PATTERN, STEP).await?;
            if self.found.take(cursor, keys, MOST_MAILBOXES) {
                break;
            }
        }
        Ok(())
    }

    async fn look_at_queue(&mut self) {
        if self
            .last_queue_look
            .is_some_and(|last| last.elapsed() < QUEUE_EVERY)
        {
            return;
        }
        match Waiting::read(&self.records).await {
            Ok(waiting) => {
                self.waiting = waiting;
                self.waiting_trouble = None;
            }
            Err(error) => self.waiting_trouble = Some(error.to_string()),
        }
        self.last_queue_look = Some(Instant::now());
    }

    fn view(&self, key: &[u8], answer: Result<Status, Trouble>) -> MailboxView {
        let name = key.strip_prefix(PREFIX).unwrap_or(key);
        let mailbox = String::from_utf8_lossy(name).into_owned();
        let queued = self.waiting.by_mailbox.get(&mailbox);
        MailboxView {
            key: key.to_vec(),
            queued: queued.copied().unwrap_or_default(),
            mailbox,
            standing: match answer {
                Ok(status) => Standing::Known(status),
                Err(trouble) => Standing::Unknown {
                    reason: trouble.reason(),
                    error: trouble.advice(),
                },
            },
        }
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.found.has_ended_once() {
            missing.push("still looking for mailboxes".into());
        }
        if self.found.overflows() {
            missing.push(format!("more than {} mailboxes", grouped(MOST_MAILBOXES as u64)));
        }
        if self.waiting.is_partial {
            missing.push(format!(
                "of the queue only the first {} messages",
                grouped(MOST_MESSAGES as u64)
            ));
        }
        if let Some(trouble) = &self.waiting_trouble {
            missing.push(format!("the queue: {trouble}"));
        }
        missing
    }
}
