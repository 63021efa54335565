//! A change that somebody at the keys wishes for.

use std::fmt;
use std::time::Duration;

use crate::args::LimitsChange;
use crate::overview::MailboxView;
use crate::server::Server;
use crate::words::{grouped, name, spoken};
use crate::{limits, pause};

/// A change, and the mailbox that it is for.
#[derive(Debug, PartialEq)]
pub struct Wish {
    pub key: Vec<u8>,
    pub name: String,
    pub change: Change,
}

/// What is changed.
#[derive(Debug, PartialEq)]
pub enum Change {
    Pause(Duration),
    Resume,
    Limits(LimitsChange),
}

impl Wish {
    pub fn new(mailbox: &MailboxView, change: Change) -> Self {
        Self {
            key: mailbox.key.clone(),
            name: mailbox.mailbox.clone(),
            change,
        }
    }

    /// Makes the change, and tells what became of it.
    pub async fn carry_out(&self, server: &Server) -> Result<String, String> {
        let key = &self.key;
        let done = match &self.change {
            Change::Pause(length) => pause::pause_on(server, key, *length)
                .await
                .map(|paused| paused.to_string()),
            Change::Resume => pause::resume_on(server, key)
                .await
                .map(|()| "not paused any more".into()),
            Change::Limits(change) => limits::change_on(server, key, change)
                .await
                .map(|()| "has its new limits".into()),
        };
        let told = |text: String| format!("{}: {text}", name(&self.name));
        done.map(told).map_err(|trouble| told(trouble.advice()))
    }
}

/// The change, as it is asked for.
impl fmt::Display for Wish {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name(&self.name);
        match &self.change {
            Change::Pause(length) => write!(formatter, "pause {name} for {}", spoken(*length)),
            Change::Resume => write!(formatter, "end the pause of {name}"),
            Change::Limits(LimitsChange { reset: true, .. }) => {
                write!(formatter, "drop all overrides of {name}")
            }
            Change::Limits(change) => {
                let limits = [
                    ("a minute", change.per_minute),
                    ("recipients a day", change.recipients_per_day),
                    ("at once", change.concurrent),
                ];
                let limits = limits
                    .into_iter()
                    .filter_map(|(what, limit)| Some(format!("{} {what}", grouped(limit?.into()))));
                write!(
                    formatter,
                    "hold {name} to {}",
                    limits.collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}
