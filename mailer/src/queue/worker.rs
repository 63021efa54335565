//! Takes jobs from the queue and has their messages sent.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bullmq::options::RedisConnectionOptions;
use bullmq::types::{KeepJobs, RemoveOnFinish};
use bullmq::worker::WorkerEvent;
use bullmq::{Error as BullError, Job, Worker, WorkerOptions};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::delivery::{Deliveries, Verdict, text_of};
use super::job::MailJob;
use super::records::{KEPT, Records, RecordsError};
use super::store::MailStore;
use super::summary::{Summary, Tally};
use super::sweep::Sweeper;
use super::{QUEUE, events};
use crate::factory::Mailers;
use crate::service::MailProviderService;
use crate::time::{now_ms, whole_ms};

/// A job over which the worker panicked comes again after this time.
const PANIC_PAUSE: Duration = Duration::from_mins(1);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
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

    fn for_bullmq(&self) -> WorkerOptions {
        let failed = KeepJobs {
            // In seconds, whatever the crate's documentation says: BullMQ's script multiplies it.
            age: Some(KEPT.as_secs()),
            count: Some(FAILED_JOBS),
            limit: None,
        };
        WorkerOptions::new()
            .connection(RedisConnectionOptions::new().url(self.redis_url.as_str()))
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
    #[error("{0}")]
    Records(#[from] RecordsError),
    /// The options are out of range, or Redis refuses the password.
    #[error("the queue {QUEUE}: {0}")]
    Queue(#[from] BullError),
}

/// A worker on the queue [`QUEUE`]; several may work at once, in several processes.
pub struct QueueWorker {
    worker: Arc<Worker>,
    tally: Arc<dyn Fn() -> Summary + Send + Sync>,
    abort: watch::Sender<bool>,
    tasks: [JoinHandle<()>; 2],
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
        let client = redis::Client::open(options.redis_url.as_str()).map_err(RecordsError::from)?;
        let records = Records::new(client, &options.prefix, QUEUE)?;
        let age_limit = service.policy().age_limit;
        let sweeper = Sweeper::new(records.clone(), mails.clone(), &options, age_limit);
        let deliveries = Arc::new(Deliveries {
            service,
            records,
            mails,
            claim_time: options.claim_time,
            send_time: options.send_time,
            tally: Tally::default(),
        });
        let abort = watch::Sender::new(false);
        let worker = Arc::new(connect(&deliveries, &abort, &options).await?);
        let counted = Arc::clone(&deliveries);
        Ok(Self {
            tasks: [
                tokio::spawn(watch_events(Arc::clone(&worker))),
                tokio::spawn(sweeper.run()),
            ],
            worker,
            tally: Arc::new(move || counted.tally.read()),
            abort,
        })
    }

    /// What it has done so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        (self.tally)()
    }

    /// Takes no new job, finishes and settles what is under way, and ends. What is not done after
    /// `grace` is left as it is, as if the worker had been killed: dropping the future does so at
    /// once.
    pub async fn shutdown(self, grace: Duration) -> Summary {
        tokio::select! {
            // It also waits for a job for up to 5 s, though it would not take it.
            closed = self.worker.close(whole_ms(grace)) => {
                if let Err(error) = closed {
                    events::queue_error(&error);
                }
            }
            () = self.idle() => {}
        }
        self.summary()
    }

    /// Waits until nothing is under way, as it was a moment ago: a job might just have been fetched.
    async fn idle(&self) {
        let mut was_idle = false;
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let is_idle = self.worker.active_count().await == 0;
            if is_idle && was_idle {
                return;
            }
            was_idle = is_idle;
        }
    }
}

impl Drop for QueueWorker {
    fn drop(&mut self) {
        self.abort.send_replace(true);
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Connects, as often as it takes.
async fn connect<M: Mailers + 'static>(
    deliveries: &Arc<Deliveries<M>>,
    abort: &watch::Sender<bool>,
    options: &QueueWorkerOptions,
) -> Result<Worker, WorkerError> {
    loop {
        let (deliveries, abort) = (Arc::clone(deliveries), abort.subscribe());
        let processor = move |job: Job, _| process(Arc::clone(&deliveries), abort.clone(), job);
        match Worker::with_options(QUEUE, processor, options.for_bullmq()).await {
            Err(BullError::Redis(error)) if !is_hopeless(&error) => {
                events::queue_error(&error);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            connected => return Ok(connected?),
        }
    }
}

fn is_hopeless(error: &redis::RedisError) -> bool {
    use redis::ErrorKind::{AuthenticationFailed, InvalidClientConfig};
    matches!(error.kind(), AuthenticationFailed | InvalidClientConfig)
}

/// `BullMQ` keeps all it has to tell until somebody listens.
async fn watch_events(worker: Arc<Worker>) {
    while let Some(event) = worker.next_event().await {
        match event {
            WorkerEvent::Error(error) => events::queue_error(&error),
            WorkerEvent::Stalled { job_id } => events::stalled(&job_id),
            _ => {}
        }
    }
}

/// A job, from its fetching to what `BullMQ` is told to do with it.
async fn process<M: Mailers>(
    deliveries: Arc<Deliveries<M>>,
    mut abort: watch::Receiver<bool>,
    job: Job,
) -> Result<Value, BullError> {
    tokio::select! {
        ended = visit(&deliveries, &job) => ended,
        // Leaves the job alone: its lock runs out, and it comes to another worker.
        _ = abort.wait_for(|abort| *abort) => Err(BullError::Delayed),
    }
}

async fn visit<M: Mailers>(deliveries: &Deliveries<M>, job: &Job) -> Result<Value, BullError> {
    let mail_job = match MailJob::parse(job.data()) {
        Ok(mail_job) => mail_job,
        Err(error) => {
            events::malformed(job.id(), &error);
            return Err(BullError::Unrecoverable(error.to_string()));
        }
    };
    let visit = deliveries.visit(&mail_job, job.id(), job.timestamp());
    // BullMQ does not catch a panic, and would never hand the job out again.
    let verdict = AssertUnwindSafe(visit).catch_unwind().await;
    match verdict.unwrap_or_else(|panic| {
        events::panicked(job.id(), text_of(&*panic));
        Verdict::Later(now_ms() + whole_ms(PANIC_PAUSE))
    }) {
        Verdict::Done => Ok(Value::Null),
        Verdict::Ended(reason) => Err(BullError::Unrecoverable(reason)),
        Verdict::Later(at) => Err(put_off(job, at).await),
    }
}

/// Has a job come again at a time. While Redis is away it tries again, for any other answer would
/// use up an attempt; a job that is not this worker's any more is left alone.
async fn put_off(job: &Job, at: u64) -> BullError {
    let mut pause = FIRST_PAUSE;
    loop {
        match job.move_to_delayed(at).await {
            Ok(()) => return BullError::Delayed,
            Err(error @ BullError::Redis(_)) => {
                events::queue_error(&error);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                events::queue_error(&error);
                return BullError::Delayed;
            }
        }
    }
}
