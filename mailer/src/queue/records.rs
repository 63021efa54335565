//! The records of all messages, in Redis beside the queue.
//!
//! | key | holds |
//! | --- | --- |
//! | `<prefix>:<queue>:message:<id>` | a hash: `record`, a [`Record`] as JSON, and its `version` |
//! | `<prefix>:<queue>:messages` | the ids of all that have not ended, by when they are due; `inf` is never |
//! | `<prefix>:<queue>:messages:failed` | the ids of those that failed, by when, for as long as records are kept |
//!
//! `BullMQ`'s own job ids hold no colon, so these are none of its keys.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, RedisError, Script};

use super::record::Record;
use crate::message::MessageId;
use crate::state::MessageState;
use crate::time::whole_ms;

/// For how long the record of a message is kept after it has ended.
pub const KEPT: Duration = Duration::from_hours(7 * 24);
/// How long Redis may take to answer or to be connected to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The records of all messages of a queue; cheap to clone, one connection.
#[derive(Clone)]
pub struct Records {
    pub(super) connection: ConnectionManager,
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

/// The records cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// Redis does not answer, or refuses.
    #[error("the records of messages in Redis: {0}")]
    Redis(#[from] RedisError),
    /// What stands there is not ours.
    #[error("the record of message {id} cannot be read: {error}")]
    Foreign {
        /// The message.
        id: MessageId,
        /// What is wrong with it.
        error: String,
    },
}

impl Records {
    /// The records beside the queue `<prefix>:<queue>`. It does not connect yet.
    pub fn new(client: redis::Client, prefix: &str, queue: &str) -> Result<Self, RecordsError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_number_of_retries(1);
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(client, config)?,
            compare_and_set: Script::new(include_str!("compare_and_set.lua")),
            base: format!("{prefix}:{queue}"),
        })
    }

    /// The record of a message, if there is one.
    pub async fn load(&self, id: &MessageId) -> Result<Option<Versioned>, RecordsError> {
        let fields = ["version", "record"];
        let found: (Option<u64>, Option<Vec<u8>>) =
            self.connection.clone().hmget(self.key(id), &fields).await?;
        match found {
            (Some(version), Some(record)) => Ok(Some(Versioned {
                record: serde_json::from_slice(&record).map_err(|error| RecordsError::Foreign {
                    id: id.clone(),
                    error: error.to_string(),
                })?,
                version,
            })),
            _ => Ok(None),
        }
    }

    /// Writes a record if it still has the version that was read, 0 if there was none. The new
    /// version, or `None` if somebody else was faster.
    pub async fn compare_and_set(
        &self,
        id: &MessageId,
        version: u64,
        record: &Record,
        now: u64,
    ) -> Result<Option<u64>, RecordsError> {
        let json = serde_json::to_string(record).map_err(|error| RecordsError::Foreign {
            id: id.clone(),
            error: error.to_string(),
        })?;
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
        let written: u64 = self
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
            .await?;
        Ok((written > 0).then_some(written))
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
