//! What the queue logs, through `tracing`. The field `event` and the fields named here are stable.
//!
//! | event | level | fields | when |
//! | --- | --- | --- | --- |
//! | [`MALFORMED`] | error | `job_id`, `error` | a job has not the form of `docs/send-scheduled-messages.schema.json`: it fails |
//! | [`RECORD_ERROR`] | warn | `message_id`, `error` | a record cannot be read or written; unless it is not ours, that is tried again |
//! | [`STORE_ERROR`] | warn | `message_id`, `error` | a mail could not be kept in the store, or not be deleted from it |
//! | [`PANIC`] | error | `job_id`, `error` | a worker panicked over a job, which comes again |
//! | [`QUEUE_ERROR`] | warn | `error` | `BullMQ` or its Redis fails; that is tried again |
//! | [`RECONNECTING`] | warn | | Redis answers, but not on `BullMQ`'s connection, which is made anew |
//! | [`STALLED`] | warn | `job_id` | the worker of a job died, and the job comes again |
//! | [`REQUEUED`] | warn | `message_id`, `state`, `overdue_ms` | the queue had lost a message, which has a new job |
//! | [`LOST`] | error | `message_id`, `state`, `error` | the queue had lost a message whose mail was in its job, so that it ended |
//! | [`FORGOTTEN`] | info | `path` | a mail was deleted from the store since no message needs it any more |
//!
//! What becomes of messages, [`service::events`](crate::service::events) tells.

use std::fmt::Display;

use tracing::{error, info, warn};

use super::record::Record;
use super::records::RecordsError;
use super::store::StoreError;
use crate::message::MessageId;

/// A job has another form.
pub const MALFORMED: &str = "mail.job.malformed";
/// A record cannot be read or written.
pub const RECORD_ERROR: &str = "mail.record.error";
/// A mail could not be kept, or not be deleted.
pub const STORE_ERROR: &str = "mail.store.error";
/// A worker panicked over a job.
pub const PANIC: &str = "mail.worker.panic";
/// `BullMQ` or its Redis fails.
pub const QUEUE_ERROR: &str = "mail.queue.error";
/// Redis answers, but not on `BullMQ`'s connection.
pub const RECONNECTING: &str = "mail.queue.reconnecting";
/// The worker of a job died.
pub const STALLED: &str = "mail.job.stalled";
/// The queue had lost a message.
pub const REQUEUED: &str = "mail.requeued";
/// The queue had lost a message with its mail.
pub const LOST: &str = "mail.lost";
/// A mail was deleted from the store since no message needs it any more.
pub const FORGOTTEN: &str = "mail.store.forgotten";

pub(super) fn malformed(job_id: &str, error: &dyn Display) {
    error!(event = MALFORMED, job_id, %error, "the job has another form than it should");
}

pub(super) fn record_error(id: &MessageId, error: &RecordsError) {
    warn!(event = RECORD_ERROR, message_id = id.as_str(), %error, "the record cannot be read or written");
}

pub(super) fn store_error(id: &MessageId, error: &StoreError) {
    warn!(event = STORE_ERROR, message_id = id.as_str(), %error, "the store of mails fails");
}

pub(super) fn panicked(job_id: &str, error: &str) {
    error!(
        event = PANIC,
        job_id, error, "the worker panicked, the job comes again"
    );
}

pub(super) fn queue_error(error: &dyn Display) {
    warn!(event = QUEUE_ERROR, %error, "the queue fails");
}

pub(super) fn reconnecting() {
    warn!(
        event = RECONNECTING,
        "the connection to the queue does not work any more, it is made anew"
    );
}

pub(super) fn stalled(job_id: &str) {
    warn!(
        event = STALLED,
        job_id, "the job's worker died, the job comes again"
    );
}

pub(super) fn requeued(id: &MessageId, record: &Record, overdue_ms: u64) {
    warn!(
        event = REQUEUED,
        message_id = id.as_str(),
        state = record.state.as_str(),
        overdue_ms,
        "the queue had lost the message, it has a new job"
    );
}

pub(super) fn lost(id: &MessageId, record: &Record) {
    error!(
        event = LOST,
        message_id = id.as_str(),
        state = record.state.as_str(),
        error = record.reason.as_deref().unwrap_or_default(),
        "the queue had lost the message and its mail with it"
    );
}

pub(super) fn forgotten(path: &str) {
    info!(
        event = FORGOTTEN,
        path, "no message needs the mail any more, it is deleted"
    );
}
