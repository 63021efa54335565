//! Where the queue is, and how a worker works on it.

use std::time::Duration;

use mailrl_mailer::queue::{QueueOptions, QueueWorkerOptions};
use mailrl_mailer::service::Policy;

use super::{Config, ConfigError};
use crate::args;

/// How much longer than a send a message stays with a worker that is not heard of.
const BEYOND_SEND: Duration = Duration::from_mins(1);

impl Config {
    /// The queue, after what was said of it elsewhere than in the file.
    pub fn queue(&self, place: &args::QueuePlace) -> Result<QueueOptions, ConfigError> {
        let (redis_url, prefix) = self.records(&place.records);
        Ok(QueueOptions {
            redis_url,
            prefix,
            store: said(place.store.as_ref())
                .or_else(|| self.mail.store.url())
                .ok_or(ConfigError::NoStore)?,
        })
    }

    /// The address and the prefix of the queue's records.
    pub fn records(&self, place: &args::RecordsPlace) -> (String, String) {
        (
            said(place.queue_redis.as_ref()).unwrap_or_else(|| self.mail.queue_redis_url().to_owned()),
            said(place.queue_prefix.as_ref()).unwrap_or_else(|| self.mail.queue.prefix().to_owned()),
        )
    }

    /// How a worker works on this queue.
    pub fn worker(&self, queue: &QueueOptions, concurrency: Option<u32>) -> QueueWorkerOptions {
        let concurrency = concurrency.unwrap_or_else(|| self.mail.queue.concurrency());
        QueueWorkerOptions {
            prefix: queue.prefix.clone(),
            concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX),
            send_time: self.mail.longest_send() + BEYOND_SEND,
            ..QueueWorkerOptions::new(queue.redis_url.as_str())
        }
    }

    /// When to give up on a message.
    pub fn policy(&self) -> Policy {
        self.mail.queue.policy()
    }
}

/// An empty value is one that is not set.
fn said(value: Option<&String>) -> Option<String> {
    value.filter(|value| !value.trim().is_empty()).cloned()
}
