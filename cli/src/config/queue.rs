//! Where the queue is.

use mailrl_mailer::queue::QueueOptions;

use super::{Config, ConfigError};
use crate::args;

impl Config {
    /// The queue, after what was said of it elsewhere than in the file.
    pub fn queue(&self, place: &args::QueuePlace) -> Result<QueueOptions, ConfigError> {
        let said = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
        Ok(QueueOptions {
            redis_url: said(&place.queue_redis).unwrap_or_else(|| self.mail.queue_redis_url().to_owned()),
            prefix: said(&place.queue_prefix).unwrap_or_else(|| self.mail.queue.prefix().to_owned()),
            store: said(&place.store)
                .or_else(|| self.mail.store.url())
                .ok_or(ConfigError::NoStore)?,
        })
    }
}
