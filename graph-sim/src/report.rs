//! What the simulator saw, per mailbox.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What the simulator saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Per mailbox.
    pub mailboxes: BTreeMap<String, MailboxReport>,
    /// Requests to the token endpoint, whatever became of them.
    pub token_requests: u64,
}

/// What the simulator saw of one mailbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxReport {
    /// Mails that were accepted.
    pub accepted: u64,
    /// Their recipients, repeats counted.
    pub recipients: u64,
    /// Refused with 429: too many messages in the message window.
    pub throttled_messages: u64,
    /// Refused with 429: too many recipients in the recipient window.
    pub throttled_recipients: u64,
    /// Refused with 429: too many requests at once.
    pub throttled_concurrent: u64,
    /// Refused for another reason: no token, too large, rubbish.
    pub rejected: u64,
    /// Requests that a fault struck.
    pub faults: u64,
    /// The most messages that were accepted within any one message window (60 s).
    pub most_messages: u64,
    /// The most recipients that were accepted within any one recipient window (24 h).
    pub most_recipients: u64,
    /// The most requests at once, one that was refused for it included.
    pub most_requests: u64,
}

impl Report {
    /// What was seen of this mailbox; all zero if it was never heard of.
    #[must_use]
    pub fn mailbox(&self, mailbox: &str) -> MailboxReport {
        self.mailboxes
            .get(&mailbox.trim().to_ascii_lowercase())
            .copied()
            .unwrap_or_default()
    }
}

impl MailboxReport {
    /// All that was refused with 429.
    #[must_use]
    pub fn throttled(&self) -> u64 {
        self.throttled_messages + self.throttled_recipients + self.throttled_concurrent
    }
}

const COLUMNS: [&str; 10] = [
    "accepted",
    "recipients",
    "429 minute",
    "429 day",
    "429 at once",
    "rejected",
    "faults",
    "most in 60 s",
    "most in 24 h",
    "most at once",
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self
            .mailboxes
            .keys()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(0)
            .max(7);
        write!(f, "{:width$}", "mailbox")?;
        for column in COLUMNS {
            write!(f, "  {column}")?;
        }
        for (name, mailbox) in &self.mailboxes {
            write!(f, "\n{name:width$}")?;
            for (column, value) in COLUMNS.iter().zip(mailbox.values()) {
                write!(f, "  {value:>width$}", width = column.len())?;
            }
        }
        write!(f, "\ntoken requests: {}", self.token_requests)
    }
}

impl MailboxReport {
    fn values(&self) -> [u64; COLUMNS.len()] {
        [
            self.accepted,
            self.recipients,
            self.throttled_messages,
            self.throttled_recipients,
            self.throttled_concurrent,
            self.rejected,
            self.faults,
            self.most_messages,
            self.most_recipients,
            self.most_requests,
        ]
    }
}
