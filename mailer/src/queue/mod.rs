//! Messages that wait for their time: a `BullMQ` queue wakes a worker up, a record of each message
//! decides whether it is sent.
//!
//! `BullMQ` delivers at least once, and a mail must go out at most once. So a job only names a
//! message; the message's [`Record`] is claimed before the mail is handed over and settled after
//! it, each time by compare-and-set.

mod connection;
mod contents;
mod decide;
mod delivery;
pub mod events;
mod fetcher;
mod hold;
mod job;
mod jobs;
mod outbox;
mod record;
mod records;
mod store;
mod summary;
mod sweep;
mod worker;

pub use decide::{DecideError, Decided};
pub use job::{JobError, MailJob};
pub use outbox::{Enqueued, Entry, Filter, QueueError, QueueOptions, SendQueue};
pub use record::{Claim, Claimable, Decision, Record, Refusal, Step};
pub use records::{KEPT, Listed, Page, Records, RecordsError, Versioned};
pub use store::{MailStore, StoreError};
pub use summary::Summary;
pub use worker::{QueueWorker, QueueWorkerOptions, WorkerError};

/// The queue's name.
pub const QUEUE: &str = "send-scheduled-messages";
/// What a job of the queue is called; workers do not look at it.
pub const JOB: &str = "send-message";
