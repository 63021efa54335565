//! One visit of a message: claim it, send it, settle it.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use uuid::Uuid;

use super::contents::{ContentsError, mail_of};
use super::events;
use super::hold::Hold;
use super::job::MailJob;
use super::record::{Claimable, Record, Refusal};
use super::records::{Records, RecordsError, Versioned};
use super::store::MailStore;
use super::summary::Tally;
use crate::factory::Mailers;
use crate::message::{MailMessage, MessageId};
use crate::service::{self, Delivery, DeliveryError, MailProviderService};
use crate::state::MessageState;
use crate::time::{now_ms, time, whole_ms};
use crate::write_ahead;

/// When a message is looked at again whose record could not be had.
const RECORD_PAUSE: Duration = Duration::from_secs(5);

/// What a job is to do after its message was visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// End.
    Done,
    /// Come again at this time, in ms since 1970.
    Later(u64),
    /// Fail, for this reason; it is not tried again.
    Ended(String),
}

/// Visits messages.
pub(super) struct Deliveries<M> {
    pub(super) service: MailProviderService<M>,
    pub(super) records: Records,
    pub(super) mails: MailStore,
    pub(super) claim_time: Duration,
    pub(super) send_time: Duration,
    pub(super) tally: Arc<Tally>,
}

impl<M: Mailers> Deliveries<M> {
    /// Sends the message that a job names, if it is its time and nobody else does. It is wanted since
    /// that time (ms since 1970), unless the job says otherwise.
    pub(super) async fn visit(&self, job: &MailJob, job_id: &str, wanted_since: u64) -> Verdict {
        loop {
            match self.try_visit(job, job_id, wanted_since).await {
                Ok(Some(verdict)) => return verdict,
                // Somebody else was faster: what has become of the message?
                Ok(None) => {}
                Err(error) => {
                    events::record_error(&job.message_id, &error);
                    return match error {
                        RecordsError::Foreign { .. } => Verdict::Ended(error.to_string()),
                        RecordsError::Redis(_) => Verdict::Later(now_ms() + whole_ms(RECORD_PAUSE)),
                    };
                }
            }
        }
    }

    async fn try_visit(
        &self,
        job: &MailJob,
        job_id: &str,
        wanted_since: u64,
    ) -> Result<Option<Verdict>, RecordsError> {
        let id = &job.message_id;
        let holder = Uuid::new_v4().to_string();
        let now = now_ms();
        let Versioned { mut record, version } = match self.records.load(id).await? {
            Some(found) => found,
            None => Versioned {
                record: new_record(job, job_id, wanted_since, now),
                version: 0,
            },
        };
        let claimed = match record.claim(&holder, now.saturating_add(whole_ms(self.claim_time)), now) {
            Ok(claimed) => claimed,
            Err(refusal) => return Ok(Some(self.refused(id, &record, &refusal).await)),
        };
        if claimed == Claimable::Abandoned {
            record.job.mime_path = self.keep(job, &record).await;
        }
        let written = self.records.compare_and_set(id, version, &record, now).await?;
        let Some(version) = written else {
            return Ok(None);
        };
        if claimed == Claimable::Abandoned {
            let came_to = Err(DeliveryError::Unknown(reason(&record)));
            service::events::answered(id, &record.mailbox, &came_to);
            self.tally.count(&came_to);
            return Ok(Some(self.settled(id, &record).await));
        }
        let claimed = Versioned { record, version };
        let hold = Hold::new(self.records.clone(), id.clone(), holder, self.send_time, claimed);
        Ok(self.deliver_and_settle(job, Arc::new(hold)).await)
    }

    async fn deliver_and_settle(&self, job: &MailJob, hold: Arc<Hold>) -> Option<Verdict> {
        let came_to = self.deliver(job, &hold).await;
        self.tally.count(&came_to);
        let kept = match came_to {
            Ok(Delivery::Sent) => None,
            _ => self.keep(job, &hold.record()).await,
        };
        match hold.settle(&came_to, kept.as_deref()).await {
            Ok(record) => Some(self.settled(&job.message_id, &record).await),
            Err(_lost) => None,
        }
    }

    async fn deliver(&self, job: &MailJob, hold: &Arc<Hold>) -> Result<Delivery, DeliveryError> {
        let record = hold.record();
        let created_at = time(record.created_at);
        let contents = mail_of(job, record.job.mime_path.as_deref(), &self.mails).await;
        let message = contents.and_then(|mime| {
            job.message(mime, record.created_at)
                .map_err(|error| ContentsError::Unusable(error.to_string()))
        });
        let message = match message {
            Ok(message) => MailMessage {
                created_at,
                failures: record.failures,
                ..message
            },
            Err(error) => {
                let came_to = match error {
                    ContentsError::Unusable(error) => Err(DeliveryError::Failed(error)),
                    ContentsError::Unavailable(error) => {
                        self.service.postpone(&job.message_id, created_at, error)
                    }
                };
                service::events::answered(&job.message_id, &record.mailbox, &came_to);
                return came_to;
            }
        };
        hold.set_mailbox(message.mailbox());
        let send = write_ahead::scope(hold.before_send(), self.service.send(&message));
        match AssertUnwindSafe(send).catch_unwind().await {
            Ok(came_to) => came_to,
            Err(panic) => {
                let error = format!("the mailer panicked: {}", text_of(&*panic));
                let came_to = if hold.is_announced() {
                    Err(DeliveryError::Unknown(error))
                } else {
                    self.service.retry(&message, error)
                };
                service::events::answered(&message.id, &message.mailbox(), &came_to);
                came_to
            }
        }
    }

    async fn refused(&self, id: &MessageId, record: &Record, refusal: &Refusal) -> Verdict {
        match refusal {
            Refusal::NotYet { scheduled_on: at } | Refusal::Held { until: at } => Verdict::Later(*at),
            Refusal::State(_) | Refusal::Lost => self.settled(id, record).await,
        }
    }

    /// What a job is to do whose message has got so far.
    async fn settled(&self, id: &MessageId, record: &Record) -> Verdict {
        match record.state {
            MessageState::Sent => {
                self.forget(id, record).await;
                Verdict::Done
            }
            MessageState::Failed | MessageState::Unknown => Verdict::Ended(reason(record)),
            MessageState::Pending | MessageState::Sending | MessageState::Scheduled => {
                Verdict::Later(record.due().unwrap_or_else(now_ms))
            }
        }
    }

    /// Keeps a mail that stands in the job only, since its message may outlive the job. Where it is,
    /// or was already.
    async fn keep(&self, job: &MailJob, record: &Record) -> Option<String> {
        let known = record.job.mime_path.clone();
        if known.is_some() {
            return known;
        }
        let mime = job.inline_mime().ok()??;
        match self.mails.put(&job.message_id, mime).await {
            Ok(path) => Some(path),
            Err(error) => {
                events::store_error(&job.message_id, &error);
                None
            }
        }
    }

    /// Deletes a mail that was sent. If that fails, the sweep does it some day.
    async fn forget(&self, id: &MessageId, record: &Record) {
        if let Some(path) = &record.job.mime_path
            && let Err(error) = self.mails.delete(path).await
        {
            events::store_error(id, &error);
        }
    }
}

fn new_record(job: &MailJob, job_id: &str, wanted_since: u64, now: u64) -> Record {
    let created_at = job.created_at.unwrap_or(wanted_since);
    // Whose mail it is shows when it is read.
    Record::new(
        job.without_mime(),
        job_id.to_owned(),
        String::new(),
        created_at,
        now,
    )
}

fn reason(record: &Record) -> String {
    record.reason.clone().unwrap_or_else(|| record.state.to_string())
}

/// What a panic said.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a word",
    }
}
