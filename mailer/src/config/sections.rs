//! The sections that name no provider.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use super::provider::Provider;
use crate::service::Policy;

const DEFAULT_REDIS: &str = "redis://127.0.0.1:6379";

/// Where the budgets are kept: `[redis]`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Redis {
    /// Its address; it may hold a password.
    pub url: Option<String>,
    /// The longest that a question to it holds a mail up, in ms.
    pub deadline_ms: Option<u64>,
}

impl Redis {
    /// The address that holds; it may hold a password.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(DEFAULT_REDIS)
    }
}

impl fmt::Debug for Redis {
    /// Leaves the address out, since it may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Redis")
            .field("deadline_ms", &self.deadline_ms)
            .finish_non_exhaustive()
    }
}

/// What every mailbox is held to: `[limits]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Messages in a minute.
    pub rate_limit_per_minute: Option<NonZeroU32>,
    /// Recipients in a day, each message counting each of its recipients.
    pub rate_limit_recipients_per_day: Option<NonZeroU32>,
    /// Sends of one mailbox under way at once, over all processes.
    pub concurrent: Option<u32>,
}

/// How one mailbox of our own sends, and what it is held to: `[mailbox."ADDRESS"]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailboxConfig {
    /// Through whom it sends: `[graph]` unless it says otherwise.
    pub provider: Provider,
    /// Messages in a minute.
    pub rate_limit_per_minute: Option<NonZeroU32>,
    /// Recipients in a day.
    pub rate_limit_recipients_per_day: Option<NonZeroU32>,
}

/// Where messages wait for their time, and when to give up: `[queue]`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Its Redis, if that is another one; it may hold a password.
    pub redis_url: Option<String>,
    /// What its keys begin with.
    pub prefix: Option<String>,
    /// How old a message may become, in hours.
    pub age_limit_h: Option<NonZeroU32>,
    /// How often a message that certainly was not sent is tried again.
    pub retries: Option<u32>,
    /// The pause before the first of them, in seconds, each next one four times as long.
    pub retry_pause_s: Option<NonZeroU32>,
    /// How many messages one worker sends at once.
    pub concurrency: Option<NonZeroU32>,
}

impl Queue {
    /// What its keys begin with: `bull`, as of `BullMQ` itself, unless told otherwise.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or("bull")
    }

    /// When to give up on a message.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let usual = Policy::default();
        Policy {
            age_limit: self.age_limit_h.map_or(usual.age_limit, |hours| {
                Duration::from_hours(u64::from(hours.get()))
            }),
            retries: self.retries.unwrap_or(usual.retries),
            first_pause: self.retry_pause_s.map_or(usual.first_pause, |seconds| {
                Duration::from_secs(u64::from(seconds.get()))
            }),
        }
    }

    /// How many messages one worker sends at once, 50 unless told otherwise.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        self.concurrency.map_or(50, NonZeroU32::get)
    }
}

impl fmt::Debug for Queue {
    /// Leaves the address out, since it may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("prefix", &self.prefix)
            .field("age_limit_h", &self.age_limit_h)
            .field("retries", &self.retries)
            .field("retry_pause_s", &self.retry_pause_s)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// Where the mails of waiting messages are: `[store]`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// Its address, as `object_store` reads it: `file://`, `s3://`, `az://`.
    pub url: Option<String>,
}

impl Store {
    /// The address that holds: the folder `mailrl/mails` in the user's data folder
    /// (`$XDG_DATA_HOME`, else `~/.local/share`) unless told otherwise. So a producer and a worker of
    /// the same user find the same mails wherever they run, and the folder of the configuration file,
    /// often read-only, stays as it is. `None` if there is no such folder.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        self.url.clone().or_else(|| default_store().map(String::from))
    }
}

impl fmt::Debug for Store {
    /// Leaves the address out, since it may hold a key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").finish_non_exhaustive()
    }
}

fn default_store() -> Option<Url> {
    let variable = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        // The specification of XDG has relative paths ignored.
        path.is_absolute().then_some(path)
    };
    let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))?;
    Url::from_directory_path(data.join("mailrl/mails")).ok()
}
