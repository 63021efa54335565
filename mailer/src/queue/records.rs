//! The records of all messages, in Redis beside the queue.
//!
//! | key | holds |
//! | --- | --- |
//! | `<prefix>:<queue>:message:<id>` | a hash: `record`, a [`Record`] as JSON, and its `version` |
//! | `<prefix>:<queue>:messages` | the ids of all that have not ended, by when they are due; `inf` is never |
//! | `<prefix>:<queue>:messages:failed` | the ids of those that failed, by when, for as long as records are kept |
//!
//! `BullMQ`'s own keys are `<prefix>:<queue>:<name>` and `<prefix>:<queue>:<job id>`, and it has neither of
//! these names, nor job ids with a colon. The limiter's keys, `mailrl:<mailbox>`, may be in another Redis.
//!
//! A record is kept until its message has ended, and [`KEPT`] from then on; one that is `UNKNOWN` waits
//! for a person for ever. In a Redis Cluster all keys of a queue must be in one slot, which they are when
//! the prefix is a hash tag, as `{bull}`; this connects to one node and does not follow redirections.

mod reply;

use std::time::Duration;

use redis::{AsyncCommands, RedisError, Script, Value};

use super::connection::Connection;
use super::record::Record;
use crate::message::MessageId;
use crate::state::MessageState;
use crate::time::whole_ms;

/// For how long the record of a message is kept after it has ended.
pub const KEPT: Duration = Duration::from_hours(7 * 24);

/// The records of all messages of a queue; cheap to clone, one connection.
#[derive(Clone)]
pub struct Records {
    pub(super) connection: Connection,
    compare_and_set: Script,
    base: String,
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The record.
    pub record: Record,
    /// Counts how often it was written; 0 if it never was.
    pub version: u64,
}

/// A message in one of the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which one.
    pub id: MessageId,
    /// In ms since 1970, when it is due or when it failed; `None` if it is due never.
    pub at: Option<u64>,
}

/// A part of a list. Messages move while it is read: over several pages one may be missed, or come twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// How many to leave out.
    pub offset: usize,
    /// How many to give at most.
    pub limit: usize,
}

/// The records cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// Redis does not answer, or refuses.
    #[error("the records of messages in Redis: {0}")]
    Redis(#[from] RedisError),
    /// What stands there is not ours; it stays as it is.
    #[error(
        "the record of message {id} cannot be read: {error}. Please look at {key} in Redis, nothing was changed"
    )]
    Foreign {
        /// The message.
        id: MessageId,
        /// The key that holds its record.
        key: String,
        /// What is wrong with it.
        error: String,
    },
}

impl Records {
    /// The records beside the queue `<prefix>:<queue>`. It does not connect yet.
    #[must_use]
    pub fn new(client: redis::Client, prefix: &str, queue: &str) -> Self {
        Self {
            connection: Connection::new(client),
            compare_and_set: Script::new(include_str!("compare_and_set.lua")),
            base: format!("{prefix}:{queue}"),
        }
    }

    /// Fails within seconds if Redis does not answer.
    pub async fn ping(&self) -> Result<(), RecordsError> {
        Ok(self.connection.clone().ping().await?)
    }

    /// The record of a message, if there is one.
    pub async fn load(&self, id: &MessageId) -> Result<Option<Versioned>, RecordsError> {
        let reply = self.connection.clone().hmget(self.key(id), &reply::FIELDS).await;
        let read = match reply {
            Ok(reply) => reply::record(reply),
            Err(error) => Err(error.into()),
        };
        read.map_err(|failure| self.error(id, failure))
    }

    /// The records of these messages, in their order, in one round trip. One that cannot be read keeps
    /// none of the others from being read.
    pub async fn load_many(
        &self,
        ids: &[MessageId],
    ) -> Result<Vec<Result<Option<Versioned>, RecordsError>>, RecordsError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for id in ids {
            pipeline.hmget(self.key(id), &reply::FIELDS);
        }
        let replies: Vec<Result<Value, RedisError>> = pipeline
            .ignore_errors()
            .query_async(&mut self.connection.clone())
            .await?;
        let read = |(id, reply): (&MessageId, Result<Value, RedisError>)| {
            let read = reply.map_err(Into::into).and_then(reply::record);
            read.map_err(|failure| self.error(id, failure))
        };
        Ok(ids.iter().zip(replies).map(read).collect())
    }

    /// Messages that have not ended and are due from `from` to `to` (ms since 1970, both included), the
    /// first that is due first. Without a `to` also those that are due never, at the end.
    pub async fn open(&self, from: u64, to: Option<u64>, page: Page) -> Result<Vec<Listed>, RecordsError> {
        self.list(self.open_key(), from, to, page).await
    }

    /// Messages that failed since `since` (ms since 1970) and whose records are still kept, the first
    /// that failed first.
    pub async fn failed(&self, since: u64, page: Page) -> Result<Vec<Listed>, RecordsError> {
        self.list(self.failed_key(), since, None, page).await
    }

    /// Writes a record if it still has the version that was read, 0 if there was none. The new
    /// version, or `None` if somebody else was faster. After an error nobody knows whether it was
    /// written: load it again.
    pub async fn compare_and_set(
        &self,
        id: &MessageId,
        version: u64,
        record: &Record,
        now: u64,
    ) -> Result<Option<u64>, RecordsError> {
        let json = serde_json::to_string(record).map_err(|error| self.error(id, error.into()))?;
        let has_ended = record.state.has_ended();
        let due = match record.due() {
            Some(due) => due.to_string(),
            None if has_ended => String::new(),
            None => "inf".to_owned(),
        };
        let failed = match record.state {
            MessageState::Failed => now.to_string(),
            _ => String::new(),
        };
        let kept = if has_ended {
            whole_ms(KEPT).to_string()
        } else {
            String::new()
        };
        let written: Result<u64, RedisError> = self
            .compare_and_set
            .key(self.key(id))
            .key(self.open_key())
            .key(self.failed_key())
            .arg(version)
            .arg(id.as_str())
            .arg(json)
            .arg(due)
            .arg(failed)
            .arg(kept)
            .arg(now.saturating_sub(whole_ms(KEPT)))
            .invoke_async(&mut self.connection.clone())
            .await;
        let written = written.map_err(|error| self.error(id, error.into()))?;
        Ok((written > 0).then_some(written))
    }

    async fn list(
        &self,
        key: String,
        from: u64,
        to: Option<u64>,
        page: Page,
    ) -> Result<Vec<Listed>, RecordsError> {
        let to = to.map_or_else(|| "+inf".to_owned(), |to| to.to_string());
        let (offset, limit) = (
            isize::try_from(page.offset).unwrap_or(isize::MAX),
            isize::try_from(page.limit).unwrap_or(isize::MAX),
        );
        let found: Vec<(String, f64)> = self
            .connection
            .clone()
            .zrangebyscore_limit_withscores(key, from, to, offset, limit)
            .await?;
        Ok(found
            .into_iter()
            .filter_map(|(id, score)| reply::listed(id, score))
            .collect())
    }

    fn error(&self, id: &MessageId, failure: reply::Failure) -> RecordsError {
        match failure {
            reply::Failure::Redis(error) => error.into(),
            reply::Failure::Foreign(error) => RecordsError::Foreign {
                id: id.clone(),
                key: self.key(id),
                error,
            },
        }
    }

    fn key(&self, id: &MessageId) -> String {
        format!("{}:message:{id}", self.base)
    }

    pub(super) fn open_key(&self) -> String {
        format!("{}:messages", self.base)
    }

    pub(super) fn failed_key(&self) -> String {
        format!("{}:messages:failed", self.base)
    }
}
