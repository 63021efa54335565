//! What Redis answers, read with care: anything may stand in its keys.

use redis::{RedisError, Value, from_redis_value};

use super::{Listed, Versioned};

/// The fields of a record's hash, in the order in which [`record`] reads them.
pub(super) const FIELDS: [&str; 2] = ["version", "record"];

/// Why there is no record to be had.
pub(super) enum Failure {
    Redis(RedisError),
    /// Something stands there, but no record.
    Foreign(String),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match error.code() {
            Some("WRONGTYPE" | "BADRECORD") => Self::Foreign(error.to_string()),
            _ => Self::Redis(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Foreign(error.to_string())
    }
}

/// The record in a hash; `None` if there is no hash.
pub(super) fn record(reply: Value) -> Result<Option<Versioned>, Failure> {
    let (version, record): (Option<Vec<u8>>, Option<Vec<u8>>) =
        from_redis_value(reply).map_err(|error| Failure::Foreign(error.to_string()))?;
    let foreign = |what: &str| Failure::Foreign(what.to_owned());
    match (version, record) {
        (None, None) => Ok(None),
        (Some(version), Some(record)) => Ok(Some(Versioned {
            record: serde_json::from_slice(&record)?,
            version: std::str::from_utf8(&version)
                .ok()
                .and_then(|version| version.parse().ok())
                .ok_or_else(|| foreign("its version is no number"))?,
        })),
        (Some(_), None) => Err(foreign("it has a version and no record")),
        (None, Some(_)) => Err(foreign("it has no version")),
    }
}

/// A message in a list, if that is a message.
pub(super) fn listed(id: String, score: f64) -> Option<Listed> {
    match id.try_into() {
        Ok(id) => Some(Listed {
            id,
            at: milliseconds(score),
        }),
        Err(error) => {
            tracing::warn!(%error, "something in the list of messages is none");
            None
        }
    }
}

/// Exact up to the year 287396.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates"
)]
fn milliseconds(score: f64) -> Option<u64> {
    score.is_finite().then_some(score as u64)
}
