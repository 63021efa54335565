//! The jobs in `BullMQ`: what wakes a worker up.

use std::time::Duration;

use bullmq::options::{QueueOptions, RedisConnectionOptions, TlsCerts};
use bullmq::types::{BackoffStrategy, JobState, KeepJobs, RemoveOnFinish};
use bullmq::{JobOptions, Queue};
use bytes::Bytes;

use super::job::MailJob;
use super::{JOB, KEPT, QUEUE};

/// How often `BullMQ` itself runs a job again that ended in an error. What concerns the mail never does;
/// this is for a Redis or a store that was away for a moment.
const ATTEMPTS: u32 = 10;
const FIRST_BACKOFF_MS: u64 = 1_000;
/// Ended jobs are kept to be looked at; what counts is in the records.
const COMPLETED_KEPT: Duration = Duration::from_hours(1);
const COMPLETED_KEPT_AT_MOST: usize = 1_000;
/// How long Redis may take, which the connection of `BullMQ` itself does not bound.
const PATIENCE: Duration = Duration::from_secs(10);

/// The jobs of the queue; cheap to clone.
#[derive(Clone)]
pub(super) struct Jobs(Queue);

impl Jobs {
    pub(super) async fn connect(redis_url: &str, prefix: &str) -> Result<Self, bullmq::Error> {
        let options = QueueOptions::new()
            .connection(connection(redis_url))
            .prefix(prefix);
        within(Queue::with_options(QUEUE, options)).await.map(Self)
    }

    /// Adds a job that is due now; one of the same id is left as it is.
    pub(super) async fn add(&self, job: &MailJob) -> Result<(), bullmq::Error> {
        let options = JobOptions::new()
            .job_id(job.message_id.as_str())
            .attempts(ATTEMPTS)
            .backoff(BackoffStrategy::Exponential(FIRST_BACKOFF_MS))
            .remove_on_complete(keep(COMPLETED_KEPT, Some(COMPLETED_KEPT_AT_MOST)))
            .remove_on_fail(keep(KEPT, None));
        within(async { self.0.add(JOB, job).options(options).await })
            .await
            .map(|_| ())
    }

    /// Removes a job; false if a worker is at it right now.
    pub(super) async fn remove(&self, job_id: &str) -> Result<bool, bullmq::Error> {
        within(self.0.remove(job_id)).await
    }

    /// Whether `BullMQ` is about to hand a job out, or has.
    pub(super) async fn is_due(&self, job_id: &str) -> Result<bool, bullmq::Error> {
        let state = within(self.0.get_job_state(job_id)).await?;
        Ok(!matches!(
            state,
            JobState::Unknown | JobState::Completed | JobState::Failed | JobState::Delayed
        ))
    }

    /// The mail that stands in a job itself, if it is still there.
    pub(super) async fn mail(&self, job_id: &str) -> Result<Option<Bytes>, bullmq::Error> {
        let job = within(self.0.get_job(job_id)).await?;
        Ok(job.and_then(|job| MailJob::parse(job.data()).ok()?.inline_mime().ok()?))
    }
}

/// How `BullMQ` reaches Redis: over TLS by the certificates that the system trusts, which are not those
/// that the crate brings.
pub(super) fn connection(redis_url: &str) -> RedisConnectionOptions {
    let options = RedisConnectionOptions::new().url(redis_url);
    if redis_url.starts_with("rediss:") {
        return options.tls_certs(TlsCerts {
            root_cert: Some(mailrl_client::trusted_certificates()),
            ..TlsCerts::default()
        });
    }
    options
}

/// The crate's documentation says ms, but its scripts count an age in seconds.
fn keep(age: Duration, count: Option<usize>) -> RemoveOnFinish {
    RemoveOnFinish::Options(KeepJobs {
        age: Some(age.as_secs()),
        count,
        limit: None,
    })
}

async fn within<T>(work: impl Future<Output = Result<T, bullmq::Error>>) -> Result<T, bullmq::Error> {
    let late = |_| bullmq::Error::Redis(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
    tokio::time::timeout(PATIENCE, work).await.map_err(late)?
}
