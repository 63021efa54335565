//! Where the queue is.

use std::path::{Path, PathBuf};

use mailrl_mailer::queue::QueueOptions;

use super::{Config, ConfigError};
use crate::args;

/// `BullMQ`'s own.
const DEFAULT_PREFIX: &str = "bull";

impl Config {
    /// The queue after flags and environment.
    pub fn queue(&self, place: &args::QueuePlace) -> Result<QueueOptions, ConfigError> {
        let said = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
        Ok(QueueOptions {
            redis_url: said(&place.queue_redis).unwrap_or_else(|| self.redis_url.clone()),
            prefix: said(&place.queue_prefix).unwrap_or_else(|| DEFAULT_PREFIX.to_owned()),
            store: match said(&place.store) {
                Some(store) => store,
                None => default_store().ok_or(ConfigError::NoStore)?,
            },
        })
    }
}

fn default_store() -> Option<String> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&variable("HOME")?).join(".local/state")))?;
    mailrl_mailer::queue::folder_address(&state.join("mailrl/queue"))
}
