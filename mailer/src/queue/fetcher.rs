//! Takes jobs out of the queue, with `BullMQ`'s own worker.
//!
//! That one makes its connections anew when they break, but not one on which only its answers have
//! stopped, or that leads to a replica since a failover: it would fetch no job any more. Who can be
//! seen to fail all the time, while Redis answers others, is replaced by a new one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bullmq::worker::WorkerEvent;
use bullmq::{Error as BullError, Job, Worker};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::delivery::{Deliveries, Verdict, text_of};
use super::job::MailJob;
use super::records::{Records, RecordsError};
use super::worker::{QueueWorkerOptions, WorkerError};
use super::{QUEUE, events};
use crate::factory::Mailers;
use crate::time::{now_ms, whole_ms};

/// A job over which the worker panicked comes again after this time.
const PANIC_PAUSE: Duration = Duration::from_mins(1);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Between two attempts to connect.
const CONNECT_EVERY: Duration = Duration::from_secs(1);

/// Takes jobs out of the queue until it is dropped.
pub(super) struct Fetcher {
    current: watch::Receiver<Arc<Worker>>,
    tending: JoinHandle<()>,
    abort: watch::Sender<bool>,
}

impl Fetcher {
    /// Starts to take jobs. While Redis is away it waits for it.
    pub(super) async fn start<M: Mailers + 'static>(
        deliveries: Deliveries<M>,
        options: QueueWorkerOptions,
    ) -> Result<Self, WorkerError> {
        let abort = watch::Sender::new(false);
        let source = Source {
            deliveries: Arc::new(deliveries),
            options,
            abort: abort.subscribe(),
        };
        let current = watch::Sender::new(source.connect().await?);
        Ok(Self {
            current: current.subscribe(),
            tending: tokio::spawn(tend(source, current)),
            abort,
        })
    }

    /// Takes no new job, and waits until what is under way has ended, for so long at most.
    pub(super) async fn finish(&self, grace: Duration) {
        self.tending.abort();
        let worker = Arc::clone(&self.current.borrow());
        tokio::select! {
            // It also waits for a job for up to 5 s, though it would not take it.
            () = close(&worker, grace) => {}
            () = idle(&worker) => {}
        }
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.abort.send_replace(true);
        self.tending.abort();
    }
}

/// Waits until nothing is under way, as it was a moment ago: a job might just have been fetched.
async fn idle(worker: &Worker) {
    let mut was_idle = false;
    loop {
        sleep(Duration::from_millis(50)).await;
        let is_idle = worker.active_count().await == 0;
        if is_idle && was_idle {
            return;
        }
        was_idle = is_idle;
    }
}

async fn close(worker: &Worker, grace: Duration) {
    if let Err(error) = worker.close(whole_ms(grace)).await {
        events::queue_error(&error);
    }
}

/// Replaces the current worker whenever it has died.
async fn tend<M: Mailers + 'static>(source: Source<M>, current: watch::Sender<Arc<Worker>>) {
    let grace = source.options.claim_time + source.options.send_time;
    loop {
        let worker = Arc::clone(&current.borrow());
        fails_for_good(&worker, &source.deliveries.records, source.options.lock).await;
        events::reconnecting();
        // What it has under way comes to its end.
        tokio::spawn(async move { close(&worker, grace).await });
        loop {
            match source.connect().await {
                Ok(worker) => break drop(current.send_replace(worker)),
                Err(error) => events::queue_error(&error),
            }
            sleep(CONNECT_EVERY).await;
        }
    }
}

/// Tells what happens to the worker, and comes back once nothing has gone well for so long although
/// Redis answered others. (`BullMQ` keeps all it has to tell until somebody listens.)
async fn fails_for_good(worker: &Worker, records: &Records, patience: Duration) {
    let mut failing_since = None;
    while let Some(event) = worker.next_event().await {
        match event {
            WorkerEvent::Error(error) => {
                events::queue_error(&error);
                if records.ping().await.is_err() {
                    failing_since = None;
                } else if failing_since.get_or_insert_with(Instant::now).elapsed() >= patience {
                    return;
                }
                continue;
            }
            WorkerEvent::Stalled { job_id } => events::stalled(&job_id),
            _ => {}
        }
        failing_since = None;
    }
}

/// All that a worker of `BullMQ` is made of.
struct Source<M> {
    deliveries: Arc<Deliveries<M>>,
    options: QueueWorkerOptions,
    abort: watch::Receiver<bool>,
}

impl<M: Mailers + 'static> Source<M> {
    /// Connects, as often as it takes.
    async fn connect(&self) -> Result<Arc<Worker>, WorkerError> {
        loop {
            match self.try_connect().await {
                Err(
                    WorkerError::Queue(BullError::Redis(error))
                    | WorkerError::Records(RecordsError::Redis(error)),
                ) if !is_hopeless(&error) => events::queue_error(&error),
                connected => return connected,
            }
            sleep(CONNECT_EVERY).await;
        }
    }

    async fn try_connect(&self) -> Result<Arc<Worker>, WorkerError> {
        // BullMQ would wait for Redis for 40 s before it says a word.
        self.deliveries.records.ping().await?;
        let (deliveries, abort) = (Arc::clone(&self.deliveries), self.abort.clone());
        let processor = move |job: Job, _| process(Arc::clone(&deliveries), abort.clone(), job);
        let worker = Worker::with_options(QUEUE, processor, self.options.for_bullmq()).await?;
        Ok(Arc::new(worker))
    }
}

fn is_hopeless(error: &redis::RedisError) -> bool {
    use redis::ErrorKind::{AuthenticationFailed, InvalidClientConfig};
    matches!(error.kind(), AuthenticationFailed | InvalidClientConfig)
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
    // A producer may have given it a delay.
    let wanted_since = job.timestamp().saturating_add(job.opts().delay.unwrap_or(0));
    let visit = deliveries.visit(&mail_job, job.id(), wanted_since);
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
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                events::queue_error(&error);
                return BullError::Delayed;
            }
        }
    }
}
