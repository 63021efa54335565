//! A message that this worker has claimed: announced before its mail is handed over, settled after.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::events;
use super::record::{Record, Refusal};
use super::records::{Records, RecordsError, Versioned};
use crate::message::MessageId;
use crate::service::{Delivery, DeliveryError};
use crate::time::{now_ms, whole_ms};
use crate::write_ahead::{BeforeSend, NotRecorded};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A message that this worker has claimed.
pub(super) struct Hold {
    records: Records,
    id: MessageId,
    holder: String,
    send_time: Duration,
    /// The record as it was last written or read.
    current: Mutex<Versioned>,
}

impl Hold {
    /// `send_time` is how long the message stays claimed from its announcement on.
    pub(super) fn new(
        records: Records,
        id: MessageId,
        holder: String,
        send_time: Duration,
        claimed: Versioned,
    ) -> Self {
        Self {
            records,
            id,
            holder,
            send_time,
            current: Mutex::new(claimed),
        }
    }

    pub(super) fn record(&self) -> Record {
        self.current().record.clone()
    }

    /// Notes whose mail it is; it is written with the next step.
    pub(super) fn set_mailbox(&self, mailbox: String) {
        self.current().record.mailbox = mailbox;
    }

    /// True if the mail may be out.
    pub(super) fn is_announced(&self) -> bool {
        self.current().record.is_announced()
    }

    /// What has to be done before the mail is handed over.
    pub(super) fn before_send(self: &Arc<Self>) -> BeforeSend {
        let hold = Arc::clone(self);
        Arc::new(move || {
            let hold = Arc::clone(&hold);
            Box::pin(async move { hold.announce().await })
        })
    }

    async fn announce(&self) -> Result<(), NotRecorded> {
        let now = now_ms();
        let Versioned { mut record, version } = self.current().clone();
        record
            .announce(&self.holder, now.saturating_add(whole_ms(self.send_time)))
            .map_err(|refusal| NotRecorded(refusal.to_string()))?;
        let written = self
            .records
            .compare_and_set(&self.id, version, &record, now)
            .await;
        match written {
            Ok(Some(version)) => {
                *self.current() = Versioned { record, version };
                Ok(())
            }
            Ok(None) => Err(NotRecorded(Refusal::Lost.to_string())),
            Err(error) => Err(NotRecorded(error.to_string())),
        }
    }

    /// Writes down what the send came to, and where the mail is if it was kept since. While Redis is
    /// away it tries again, for as long as it is let: nobody else knows.
    pub(super) async fn settle(
        &self,
        came_to: &Result<Delivery, DeliveryError>,
        kept: Option<&str>,
    ) -> Result<Record, Refusal> {
        let mut pause = FIRST_PAUSE;
        loop {
            let now = now_ms();
            let Versioned { mut record, version } = self.current().clone();
            record.settle(&self.holder, came_to, now)?;
            if let Some(kept) = kept {
                record.job.mime_path = Some(kept.to_owned());
            }
            match self.write(version, &record, now).await {
                Ok(true) => return Ok(record),
                Ok(false) => {}
                Err(error) => {
                    events::record_error(&self.id, &error);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// False if somebody else wrote it meanwhile, or this worker did without knowing: then it was
    /// read anew. If Redis lost what was written last (it came back from an older copy, or a replica
    /// took over), nobody knows better than this worker, and its record is written over what is left;
    /// else the mail would go out again.
    async fn write(&self, version: u64, record: &Record, now: u64) -> Result<bool, RecordsError> {
        if self
            .records
            .compare_and_set(&self.id, version, record, now)
            .await?
            .is_some()
        {
            return Ok(true);
        }
        match self.records.load(&self.id).await? {
            Some(found) if found.version >= version || found.record.is_announced() => *self.current() = found,
            older => self.current().version = older.map_or(0, |found| found.version),
        }
        Ok(false)
    }

    fn current(&self) -> MutexGuard<'_, Versioned> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
