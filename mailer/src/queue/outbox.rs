//! What producers and people do with the queue: put messages in, look at them, decide on them.

use std::fmt;
use std::time::SystemTime;

use futures_util::stream::{self, Stream, StreamExt as _};
use mailrl_client::Mailbox;

use super::QUEUE;
use super::job::MailJob;
use super::jobs::Jobs;
use super::record::Record;
use super::records::{Listed, Page, Records, RecordsError};
use super::store::{MailStore, StoreError};
use crate::message::{MailMessage, MessageId};
use crate::state::MessageState;
use crate::time::ms;

/// How many messages are read at a time.
const PAGE: usize = 500;

/// Where the queue is.
#[derive(Clone)]
pub struct QueueOptions {
    /// The Redis of the queue, as `redis://host:port`, or `rediss://` over TLS.
    pub redis_url: String,
    /// What its keys begin with, `bull` in `BullMQ` unless told otherwise.
    pub prefix: String,
    /// Where mails are kept, as [`MailStore::open`] takes it.
    pub store: String,
}

/// The queue `send-scheduled-messages`, for who puts messages in or looks at them; cheap to clone.
#[derive(Clone)]
pub struct SendQueue {
    pub(super) records: Records,
    pub(super) jobs: Jobs,
    pub(super) store: MailStore,
}

/// What became of a message that was to be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It is in the queue.
    Queued,
    /// One of that id was there before, and stays as it is.
    AlreadyThere(MessageState),
}

/// A message that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: MessageId,
    /// All that is known of it.
    pub record: Record,
}

/// Which messages are listed; all that have not ended and that failed by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those in one of these states, if there are any. Those that were sent are in no list.
    pub states: Vec<MessageState>,
    /// Only those of this mailbox.
    pub mailbox: Option<Mailbox>,
}

/// The queue cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The address of Redis cannot be used.
    #[error("the address of the queue's Redis cannot be used ({0}): write it as redis://host:port")]
    Address(String),
    /// The records cannot be had.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// `BullMQ` cannot be used.
    #[error("the queue {QUEUE} in Redis: {0}")]
    Jobs(#[from] bullmq::Error),
    /// The mails cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SendQueue {
    /// The queue at these places; fails within seconds if its Redis is not there.
    pub async fn connect(options: &QueueOptions) -> Result<Self, QueueError> {
        let client = mailrl_client::open_redis(options.redis_url.as_str())
            .map_err(|error| QueueError::Address(error.to_string()))?;
        let records = Records::new(client, &options.prefix, QUEUE);
        // BullMQ would wait for it much longer.
        records.ping().await?;
        Ok(Self {
            jobs: Jobs::connect(&options.redis_url, &options.prefix).await?,
            store: MailStore::open(&options.store)?,
            records,
        })
    }

    /// Puts a message into the queue, unless one of its id is there already.
    ///
    /// The mail is kept first, then the record, then the job is added: whatever is cut off in between,
    /// either nothing was queued, or the message has a record, and workers give it its job. After an error
    /// it is safe to try again with the same id.
    pub async fn enqueue(&self, message: &MailMessage) -> Result<Enqueued, QueueError> {
        loop {
            if let Some(found) = self.records.load(&message.id).await? {
                return Ok(self.already_there(&found.record).await);
            }
            let path = self.store.put(&message.id, message.mime.clone()).await?;
            let now = ms(SystemTime::now());
            let record = Record::new(
                MailJob::new(message, path.clone()),
                message.id.to_string(),
                message.mailbox(),
                ms(message.created_at),
                now,
            );
            let written = self.records.compare_and_set(&message.id, 0, &record, now).await?;
            if written.is_some() {
                self.wake_up(&record).await;
                return Ok(Enqueued::Queued);
            }
            self.store.delete(&path).await?;
        }
    }

    /// Who queued it may have been cut off before its job was there.
    async fn already_there(&self, record: &Record) -> Enqueued {
        if record.state == MessageState::Pending {
            self.wake_up(record).await;
        }
        Enqueued::AlreadyThere(record.state)
    }

    /// Adds a message's job. That it fails is no error: workers look after each record that has none.
    pub(super) async fn wake_up(&self, record: &Record) {
        if let Err(error) = self.jobs.add(&record.job).await {
            tracing::warn!(
                message_id = record.job.message_id.as_str(),
                %error,
                "the message has no job yet, and waits until a worker looks after it"
            );
        }
    }

    /// What is known of a message, if it is.
    pub async fn show(&self, id: &MessageId) -> Result<Option<Entry>, QueueError> {
        let found = self.records.load(id).await?;
        Ok(found.map(|found| Entry {
            id: id.clone(),
            record: found.record,
        }))
    }

    /// The messages that the filter lets through: first those that have not ended, by when they are due,
    /// then those that failed, by when. They are read as they are asked for; those that move meanwhile may
    /// come twice or be missed. One that cannot be read is an error among the others.
    pub fn list<'a>(&'a self, filter: &'a Filter) -> impl Stream<Item = Result<Entry, QueueError>> + 'a {
        let lists = [List::Open, List::Failed]
            .into_iter()
            .filter(|list| list.may_hold(filter));
        stream::iter(lists)
            .flat_map(move |list| self.pages(list))
            .filter(move |found| {
                let is_wanted = found.as_ref().map_or(true, |entry| filter.wants(&entry.record));
                std::future::ready(is_wanted)
            })
    }

    fn pages(&self, list: List) -> impl Stream<Item = Result<Entry, QueueError>> + '_ {
        let pages = stream::unfold(Some(0), move |offset| async move {
            let offset = offset?;
            match self.page(list, Page { offset, limit: PAGE }).await {
                Ok((listed, entries)) => Some((entries, (listed == PAGE).then_some(offset + PAGE))),
                Err(error) => Some((vec![Err(error)], None)),
            }
        });
        pages.flat_map(stream::iter)
    }

    /// How many the page listed, and those of them that are still there.
    async fn page(
        &self,
        list: List,
        page: Page,
    ) -> Result<(usize, Vec<Result<Entry, QueueError>>), QueueError> {
        let listed = match list {
            List::Open => self.records.open(0, None, page).await?,
            List::Failed => self.records.failed(0, page).await?,
        };
        let ids: Vec<_> = listed.into_iter().map(|Listed { id, .. }| id).collect();
        let found = self.records.load_many(&ids).await?;
        let count = ids.len();
        let entries = ids.into_iter().zip(found).filter_map(|(id, found)| match found {
            Ok(None) => None,
            Ok(Some(found)) => Some(Ok(Entry {
                id,
                record: found.record,
            })),
            Err(error) => Some(Err(error.into())),
        });
        Ok((count, entries.collect()))
    }
}

#[derive(Clone, Copy)]
enum List {
    Open,
    Failed,
}

impl List {
    fn may_hold(self, filter: &Filter) -> bool {
        let is_failed = |state: &MessageState| *state == MessageState::Failed;
        filter.states.is_empty()
            || match self {
                Self::Open => !filter.states.iter().all(is_failed),
                Self::Failed => filter.states.iter().any(is_failed),
            }
    }
}

impl Filter {
    fn wants(&self, record: &Record) -> bool {
        let state = self.states.is_empty() || self.states.contains(&record.state);
        let mailbox = self
            .mailbox
            .as_ref()
            .is_none_or(|mailbox| mailbox.as_str() == record.mailbox);
        state && mailbox
    }
}

impl fmt::Debug for QueueOptions {
    /// Leaves the addresses out, since they may hold passwords.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("QueueOptions")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
