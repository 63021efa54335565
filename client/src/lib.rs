//! Reserves a mailbox's budget in Redis before each send, and fails open.

pub mod handover;
mod outcome;

pub use outcome::{MailOutcome, SendFailure};
