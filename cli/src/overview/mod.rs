//! All mailboxes at once, as data: what the terminal shows, and what a page could serve as JSON.
//!
//! | file | subject |
//! | --- | --- |
//! | `find` | which mailboxes there are: a scan in small steps |
//! | `queued` | what the queue holds for each |
//! | `poll` | the questions to Redis |

mod find;
mod poll;
mod queued;

use serde::Serialize;

use crate::status::Status;
pub use poll::Poller;
pub use queued::Queued;

/// How all mailboxes stood at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Overview {
    /// By name.
    pub mailboxes: Vec<MailboxView>,
    /// What is missing, for people; empty where all was seen.
    pub missing: Vec<String>,
}

/// How one mailbox stood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MailboxView {
    /// Its key in Redis, which need not be text.
    #[serde(skip)]
    pub key: Vec<u8>,
    /// Its name, with a replacement character for what is no UTF-8. It may hold control characters.
    pub mailbox: String,
    /// Its state, or why that cannot be had.
    #[serde(flatten)]
    pub standing: Standing,
    /// What waits for it.
    pub queued: Queued,
}

/// The state of a mailbox, or why that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Standing {
    /// As `MAILRL.STATUS` tells it.
    Known(Status),
    /// Its key holds something else, or the question is not allowed.
    Unknown {
        /// For programs.
        reason: &'static str,
        /// For people.
        error: String,
    },
}

impl MailboxView {
    /// Its state, if that is known.
    pub fn status(&self) -> Option<&Status> {
        match &self.standing {
            Standing::Known(status) => Some(status),
            Standing::Unknown { .. } => None,
        }
    }
}
