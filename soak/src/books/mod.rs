//! The books: what went in, against what Graph, the queue and Redis say became of it. Pure.
//!
//! | file | subject |
//! | --- | --- |
//! | `messages` | each message is accounted for |
//! | `minute` | no mailbox sent more in a minute than it may |
//! | `budget` | reservations against sends |

mod budget;
mod messages;
mod minute;

use std::fmt;
use std::ops::RangeInclusive;

use mailrl_mailer::MessageState;

pub use budget::Budget;
pub use minute::{LimitChange, judged};

/// All that is known at the end of a run.
#[derive(Debug, Default)]
pub struct Books {
    /// Each message that was put in, and its state in the queue; none if the queue does not know it.
    pub messages: Vec<(String, Option<MessageState>)>,
    /// What Graph took.
    pub accepted: Vec<Accepted>,
    /// What a mailbox may send in a minute from some time on.
    pub limits: Vec<LimitChange>,
    /// Times (ms since 1970) in which mail can go out uncounted, or is counted too early.
    pub unsure: Vec<RangeInclusive<u64>>,
    pub budget: Budget,
}

/// A mail that Graph took.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub id: String,
    pub mailbox: String,
    /// In ms since 1970.
    pub at: u64,
}

/// Something that does not add up.
#[derive(Debug, PartialEq, Eq)]
pub struct Imbalance {
    pub what: String,
    pub ids: Vec<String>,
}

/// All that does not add up.
pub fn check(books: &Books) -> Vec<Imbalance> {
    let mut found = messages::check(books);
    found.extend(minute::check(books));
    found.extend(budget::check(&books.budget));
    found
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.ids.is_empty() {
            write!(f, ": {}", self.ids.join(" "))?;
        }
        Ok(())
    }
}
