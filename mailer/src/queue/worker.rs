//! Takes jobs from the queue and has their messages sent.

use std::sync::Arc;
use std::time::Duration;

use bullmq::WorkerOptions;
use bullmq::types::{KeepJobs, RemoveOnFinish};
use tokio::task::JoinHandle;

use super::delivery::Deliveries;
use super::fetcher::Fetcher;
use super::records::{KEPT, Records, RecordsError};
use super::store::MailStore;
use super::summary::{Summary, Tally};
use super::sweep::Sweeper;
use super::{QUEUE, jobs};
use crate::factory::Mailers;
use crate::service::MailProviderService;

/// The most failed jobs that stay in the queue to be looked at.
const FAILED_JOBS: usize = 10_000;

/// How a worker works.
#[derive(Clone)]
pub struct QueueWorkerOptions {
    /// The queue's Redis, as `redis://[user:password@]host:port[/database]`, `rediss://` over TLS.
    pub redis_url: String,
    /// What all keys of the queue begin with; `bull` by default, as `BullMQ` has it.
    pub prefix: String,
    /// How many messages it sends at once; 50 by default.
    pub concurrency: usize,
    /// How long a message stays with a worker that is not heard of and has not handed its mail over:
    /// for the mail to be fetched and its budget to be had. 60 s by default.
    pub claim_time: Duration,
    /// How long handing a mail over may take at most, and some more: past that, one whose worker is
    /// not heard of any more is [`MessageState::Unknown`](crate::MessageState::Unknown). 90 s by
    /// default, for a mailer that gives up after 30 s, in getting a token and in posting.
    pub send_time: Duration,
    /// How long a job stays with a worker that is not heard of; 30 s by default.
    pub lock: Duration,
    /// How often jobs are looked for whose worker is gone; 30 s by default.
    pub stalled_check: Duration,
    /// How often messages are looked for that the queue has lost; 60 s by default.
    pub sweep_every: Duration,
    /// How long a message may be overdue before it is looked for; 60 s by default.
    pub overdue: Duration,
}

impl QueueWorkerOptions {
    /// The defaults, with the queue in this Redis.
    #[must_use]
    pub fn new(redis_url: impl Into<String>) -> Self {
        Self {
            redis_url: redis_url.into(),
            prefix: "bull".to_owned(),
            concurrency: 50,
            claim_time: Duration::from_mins(1),
            send_time: Duration::from_secs(90),
            lock: Duration::from_secs(30),
            stalled_check: Duration::from_secs(30),
            sweep_every: Duration::from_mins(1),
            overdue: Duration::from_mins(1),
        }
    }

    pub(super) fn for_bullmq(&self) -> WorkerOptions {
        let failed = KeepJobs {
            // In seconds, whatever the crate's documentation says: BullMQ's script multiplies it.
            age: Some(KEPT.as_secs()),
            count: Some(FAILED_JOBS),
            limit: None,
        };
        WorkerOptions::new()
            .connection(jobs::connection(&self.redis_url))
            .prefix(self.prefix.as_str())
            .concurrency(self.concurrency)
            .lock_duration(self.lock)
            .stalled_interval(self.stalled_check)
            // Its record decides about a message, not how often its workers died.
            .max_stalled_count(u32::MAX)
            .run_retry_delay(Duration::from_millis(500))
            .remove_on_complete(RemoveOnFinish::Bool(true))
            .remove_on_fail(RemoveOnFinish::Options(failed))
    }
}

/// No worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The address of Redis cannot be used.
    #[error("the address of the queue's Redis cannot be used ({0}): write it as redis://host:port")]
    Address(String),
    /// Redis refuses the password.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The options are out of range, or Redis refuses the password.
    #[error("the queue {QUEUE}: {0}")]
    Queue(#[from] bullmq::Error),
}

/// A worker on the queue [`QUEUE`]; several may work at once, in several processes.
pub struct QueueWorker {
    fetcher: Fetcher,
    tally: Arc<Tally>,
    sweeping: JoinHandle<()>,
}

impl QueueWorker {
    /// Starts a worker. While Redis is away it waits for it.
    ///
    /// Each mailer of the service must have a [`WriteAhead`](crate::write_ahead::WriteAhead) around
    /// its innermost mailer: without, a mail that a killed worker may have sent is sent again.
    ///
    /// # Errors
    /// If the options cannot be used, or Redis refuses the password.
    pub async fn start<M: Mailers + 'static>(
        service: MailProviderService<M>,
        mails: MailStore,
        options: QueueWorkerOptions,
    ) -> Result<Self, WorkerError> {
        let client = mailrl_client::open_redis(options.redis_url.as_str())
            .map_err(|error| WorkerError::Address(error.to_string()))?;
        let records = Records::new(client, &options.prefix, QUEUE);
        let age_limit = service.policy().age_limit;
        let sweeper = Sweeper::new(records.clone(), mails.clone(), &options, age_limit);
        let tally = Arc::new(Tally::default());
        let deliveries = Deliveries {
            service,
            records,
            mails,
            claim_time: options.claim_time,
            send_time: options.send_time,
            tally: Arc::clone(&tally),
        };
        Ok(Self {
            fetcher: Fetcher::start(deliveries, options).await?,
            tally,
            sweeping: tokio::spawn(sweeper.run()),
        })
    }

    /// What it has done so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.tally.read()
    }

    /// Takes no new job, finishes and settles what is under way, and ends. What is not done after
    /// `grace` is left as it is, as if the worker had been killed: dropping the future does so at
    /// once.
    pub async fn shutdown(self, grace: Duration) -> Summary {
        self.fetcher.finish(grace).await;
        self.summary()
    }
}

impl Drop for QueueWorker {
    fn drop(&mut self) {
        self.sweeping.abort();
    }
}
