//! What happened during a run, as all parts of it write it down.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use mailrl_client::events as brake;
use mailrl_mailer::service::events as mail;
use serde::Deserialize;

use crate::books::{Budget, LimitChange};
use crate::mailboxes::{MAILBOXES, PER_MINUTE};

/// How long a mail may be under way, from its reservation on: Graph's time-out and some more.
const UNDER_WAY_MS: u64 = 3_000;
/// A worker keeps back so long what it has just logged.
const KEPT_BACK_MS: u64 = 1_000;

/// An event of a worker's log.
#[derive(Deserialize)]
pub struct Event {
    #[serde(rename = "event")]
    name: String,
    reason: Option<String>,
    suppressed: Option<u64>,
}

/// What was written down.
#[derive(Default)]
pub struct Written {
    pub put_in: Vec<String>,
    pub limits: Vec<LimitChange>,
    pub unsure: Vec<RangeInclusive<u64>>,
    pub budget: Budget,
    pub redis_outages: u64,
}

#[derive(Clone)]
pub struct Journal(Arc<Mutex<Written>>);

impl Journal {
    pub fn begin() -> Self {
        let limit = |mailbox: &crate::mailboxes::Mailbox| LimitChange {
            mailbox: mailbox.name.to_owned(),
            from: 0,
            per_minute: PER_MINUTE,
        };
        Self(Arc::new(Mutex::new(Written {
            limits: MAILBOXES.iter().map(limit).collect(),
            ..Written::default()
        })))
    }

    pub fn read(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn put_in(&self, id: String) {
        self.read().put_in.push(id);
    }

    pub fn limit(&self, mailbox: &str, per_minute: u32) {
        let change = LimitChange {
            mailbox: mailbox.to_owned(),
            from: now_ms(),
            per_minute,
        };
        self.read().limits.push(change);
    }

    /// What a Redis has counted that ends now.
    pub fn counted(&self, allowed: u64, released: u64) {
        let budget = &mut self.read().budget;
        budget.allowed += allowed;
        budget.released += released;
    }

    pub fn redis_killed(&self) {
        self.read().budget.kills += 1;
    }

    pub fn worker_killed(&self) {
        let now = now_ms();
        let mut written = self.read();
        written.budget.kills += 1;
        written
            .unsure
            .push(now.saturating_sub(UNDER_WAY_MS)..=now + UNDER_WAY_MS);
    }

    pub fn heard(&self, event: &Event) {
        let now = now_ms();
        let mut written = self.read();
        let budget = &mut written.budget;
        match event.name.as_str() {
            mail::SENT => budget.sent += 1,
            mail::UNKNOWN => budget.unknown += 1,
            mail::RETRIED | mail::FAILED => budget.not_sent += 1,
            mail::DEFERRED if event.reason.as_deref() == Some("upstream") => budget.not_sent += 1,
            brake::REDIS_ERROR => {
                budget.unanswered += 1 + event.suppressed.unwrap_or(0);
                written.redis_outages += 1;
                let from = now.saturating_sub(UNDER_WAY_MS);
                written.unsure.push(from..=now + KEPT_BACK_MS + UNDER_WAY_MS);
            }
            _ => {}
        }
    }
}

pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
