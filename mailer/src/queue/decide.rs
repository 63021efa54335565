//! What people decide about messages.

use std::time::SystemTime;

use super::outbox::{QueueError, SendQueue};
use super::record::{Decision, Record, Refusal};
use crate::message::MessageId;
use crate::state::MessageState;
use crate::time::ms;

/// How often a decision is made anew when a worker was faster; each time the message has come further.
const TRIES: usize = 10;

/// What a decision came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// What the message was.
    pub before: MessageState,
    /// What it is now.
    pub now: MessageState,
}

/// Nothing was decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// There is no record of it.
    #[error("there is no message of that id, or it ended more than 7 days ago")]
    NoMessage,
    /// It cannot be decided in the state that it is in.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is nothing that could be sent any more.
    #[error("its mail is not there any more ({0}): enqueue it anew under another id")]
    NoMail(String),
    /// Workers and others were faster each time.
    #[error("others changed the message again and again at the same time: try again")]
    Busy,
    /// The queue cannot be used.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl SendQueue {
    /// Does what a person (`by`) decided about a message. It holds against workers that act at the same
    /// moment: either the decision was first, and they leave the message, or they were, and it is made on
    /// what the message has become.
    ///
    /// - [`Decision::Send`] starts the message anew, and a new job wakes a worker up for it now.
    /// - [`Decision::Sent`] and [`Decision::Drop`] end it, and take its job and its mail away.
    pub async fn decide(&self, id: &MessageId, decision: Decision, by: &str) -> Result<Decided, DecideError> {
        for _ in 0..TRIES {
            let found = self.records.load(id).await.map_err(QueueError::from)?;
            let found = found.ok_or(DecideError::NoMessage)?;
            let now = ms(SystemTime::now());
            let mut record = found.record.clone();
            record.decide(decision, by, now)?;
            let old_job = record.job_id.clone();
            if decision == Decision::Send {
                self.have_mail(id, &mut record).await?;
                // Whoever added the first job may have given it an id of its own.
                record.job_id = id.to_string();
            }
            let written = self
                .records
                .compare_and_set(id, found.version, &record, now)
                .await
                .map_err(QueueError::from)?;
            if written.is_some() {
                self.follow(&record, &old_job).await;
                return Ok(Decided {
                    before: found.record.state,
                    now: record.state,
                });
            }
        }
        Err(DecideError::Busy)
    }

    /// Sees to it that there is a mail in the store that can be sent, for the old job may hold it and goes.
    async fn have_mail(&self, id: &MessageId, record: &mut Record) -> Result<(), DecideError> {
        if let Some(path) = &record.job.mime_path {
            let is_there = self.store.contains(path).await.map_err(QueueError::from)?;
            return if is_there {
                Ok(())
            } else {
                Err(DecideError::NoMail(path.clone()))
            };
        }
        let mail = self.jobs.mail(&record.job_id).await.map_err(QueueError::from)?;
        let mail = mail.ok_or_else(|| DecideError::NoMail(format!("it was in job {}", record.job_id)))?;
        let path = self.store.put(id, mail).await.map_err(QueueError::from)?;
        record.job.mime_path = Some(path);
        Ok(())
    }

    /// What follows from a decision that stands. None of it must come about for it to hold: workers
    /// leave a message alone whose record says so, and look after one that has no job.
    async fn follow(&self, record: &Record, old_job: &str) {
        let message_id = record.job.message_id.as_str();
        match self.jobs.remove(old_job).await {
            // A worker is at it; it will find the record as it is now.
            Ok(true | false) => {}
            Err(error) => tracing::warn!(message_id, %error, "the message's job was not removed"),
        }
        if record.state == MessageState::Pending {
            self.wake_up(record).await;
        } else if let Some(path) = &record.job.mime_path
            && let Err(error) = self.store.delete(path).await
        {
            tracing::warn!(message_id, %error, "the message's mail was not deleted");
        }
    }
}
