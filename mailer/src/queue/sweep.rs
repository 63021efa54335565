//! Looks after messages that the queue has lost, and mails that no message needs.
//!
//! `BullMQ` loses a job when its last step fails for lack of Redis, or when somebody removes it. The
//! records know which messages are overdue.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt as _;
use futures_util::future::try_join_all;
use redis::AsyncCommands as _;

use super::events;
use super::jobs::Jobs;
use super::record::Record;
use super::records::{KEPT, Page, Records, RecordsError, Versioned};
use super::store::{MailStore, StoreError};
use super::worker::QueueWorkerOptions;
use crate::message::MessageId;
use crate::time::{now_ms, whole_ms};

/// How many messages are read at once.
const PAGE: usize = 200;
/// How many messages a pass looks at before it leaves the rest to the next one.
const PAGES_A_PASS: usize = 10;
/// How many of them at a time.
const AT_ONCE: usize = 16;
/// How often mails are looked for that no message needs.
const CLEAN_EVERY: Duration = Duration::from_hours(1);

/// Looks after what the queue has lost.
pub(super) struct Sweeper {
    records: Records,
    mails: MailStore,
    options: QueueWorkerOptions,
    age_limit: Duration,
    jobs: Option<Jobs>,
    /// How many overdue messages the last pass found in order.
    passed: usize,
}

/// Why a pass was not finished; the next one is another chance.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    Queue(#[from] bullmq::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sweeper {
    pub(super) fn new(
        records: Records,
        mails: MailStore,
        options: &QueueWorkerOptions,
        age_limit: Duration,
    ) -> Self {
        Self {
            records,
            mails,
            options: options.clone(),
            age_limit,
            jobs: None,
            passed: 0,
        }
    }

    /// Sweeps from time to time, for ever; of all workers one at a time.
    pub(super) async fn run(mut self) {
        loop {
            tokio::time::sleep(self.options.sweep_every).await;
            if let Err(error) = self.pass().await {
                events::queue_error(&error);
                // Its connection may be one that will never work again.
                self.jobs = None;
            }
        }
    }

    async fn pass(&mut self) -> Result<(), SweepError> {
        // A little less than the time between two, so that nobody misses the turn by a hair.
        let turn = self.options.sweep_every.mul_f64(0.9);
        if self.records.take_turn("sweep", turn).await? {
            self.requeue_lost().await?;
        }
        if self.records.take_turn("clean", CLEAN_EVERY).await? {
            self.forget_unneeded().await?;
        }
        Ok(())
    }

    async fn requeue_lost(&mut self) -> Result<(), SweepError> {
        let jobs = if let Some(jobs) = &self.jobs {
            jobs.clone()
        } else {
            let jobs = Jobs::connect(&self.options.redis_url, &self.options.prefix).await?;
            self.jobs.insert(jobs).clone()
        };
        for _ in 0..PAGES_A_PASS {
            let before = now_ms().saturating_sub(whole_ms(self.options.overdue));
            let page = Page {
                offset: self.passed,
                limit: PAGE,
            };
            let page = self.records.open(0, Some(before), page).await?;
            for some in page.chunks(AT_ONCE) {
                let visits = some.iter().map(|it| self.look_after(&jobs, &it.id, before));
                let in_order = try_join_all(visits).await?;
                self.passed += in_order.into_iter().filter(|&stays| stays).count();
            }
            if page.len() < PAGE {
                self.passed = 0;
                break;
            }
        }
        Ok(())
    }

    /// Gives an overdue message a new job if it has none. True if it stays in the list of those that
    /// are overdue.
    async fn look_after(&self, jobs: &Jobs, id: &MessageId, before: u64) -> Result<bool, SweepError> {
        let found = match self.records.load(id).await {
            Ok(found) => found,
            Err(error @ RecordsError::Foreign { .. }) => {
                events::record_error(id, &error);
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        let due = found.as_ref().and_then(|found| found.record.due());
        let (Some(found), Some(due)) = (found, due.filter(|&due| due <= before)) else {
            return Ok(false);
        };
        // A message that was lost before has a job by its own name.
        for job_id in [found.record.job_id.as_str(), id.as_str()] {
            if jobs.is_due(job_id).await? {
                return Ok(true);
            }
        }
        let Some(record) = self.with_mail(jobs, id, found).await? else {
            return Ok(false);
        };
        match requeue(jobs, id, &record).await {
            Ok(()) => events::requeued(id, &record, now_ms().saturating_sub(due)),
            Err(error @ bullmq::Error::Redis(_)) => return Err(error.into()),
            // One that cannot be helped must not stand in the way of the others.
            Err(error) => events::queue_error(&error),
        }
        Ok(true)
    }

    /// The record of a message whose mail can be had without its job, into which a producer may have put
    /// it; `None` if there is none any more, which ends the message, or if it has come further meanwhile.
    async fn with_mail(
        &self,
        jobs: &Jobs,
        id: &MessageId,
        Versioned { mut record, version }: Versioned,
    ) -> Result<Option<Record>, SweepError> {
        if record.job.mime_path.is_some() {
            return Ok(Some(record));
        }
        let now = now_ms();
        let mail = jobs.mail(&record.job_id).await?;
        let is_lost = mail.is_none();
        if let Some(mail) = mail {
            record.job.mime_path = Some(self.mails.put(id, mail).await?);
        } else {
            let reason = format!(
                "its mail was in job {}, which is gone: enqueue it anew",
                record.job_id
            );
            if record.lose(reason, now).is_err() {
                return Ok(None);
            }
        }
        if self
            .records
            .compare_and_set(id, version, &record, now)
            .await?
            .is_none()
        {
            return Ok(None);
        }
        if is_lost {
            events::lost(id, &record);
            return Ok(None);
        }
        Ok(Some(record))
    }

    /// Deletes mails that are older than any message gets, its record included, unless one needs them
    /// still: it waits for a person, or one had it sent again.
    async fn forget_unneeded(&self) -> Result<(), SweepError> {
        let before = SystemTime::now() - (self.age_limit + KEPT);
        let mut unneeded: HashSet<String> = self.mails.list_older_than(before).try_collect().await?;
        if unneeded.is_empty() {
            return Ok(());
        }
        let (open, failed) = (self.records.open_key(), self.records.failed_key());
        // The first list once more, for a message might change over while the second one is read.
        for list in [&open, &failed, &open] {
            for id in self.records.all_in(list).await? {
                if let Some(found) = self.records.load(&id).await?
                    && let Some(path) = found.record.job.mime_path
                {
                    unneeded.remove(&path);
                }
            }
        }
        for path in unneeded {
            self.mails.delete(&path).await?;
            events::forgotten(&path);
        }
        Ok(())
    }
}

/// Gives a message a job by its own name: a number that `BullMQ` gave cannot be had again.
async fn requeue(jobs: &Jobs, id: &MessageId, record: &Record) -> Result<(), bullmq::Error> {
    // The queue ignores a job whose id it knows.
    jobs.remove(id.as_str()).await?;
    jobs.add(&record.job).await
}

impl Records {
    /// True for one worker in each period: it does what all could.
    async fn take_turn(&self, what: &str, period: Duration) -> Result<bool, RecordsError> {
        let taken: bool = redis::cmd("SET")
            .arg(format!("{}:{what}", self.open_key()))
            .arg("taken")
            .arg("NX")
            .arg("PX")
            .arg(whole_ms(period))
            .query_async(&mut self.connection.clone())
            .await?;
        Ok(taken)
    }

    /// All messages in a list.
    async fn all_in(&self, key: &str) -> Result<Vec<MessageId>, RecordsError> {
        let mut connection = self.connection.clone();
        let mut found = connection.zscan::<_, (String, f64)>(key).await?;
        let mut ids = Vec::new();
        while let Some(item) = found.next_item().await {
            let (id, _due) = item?;
            ids.extend(id.parse().ok());
        }
        Ok(ids)
    }
}
