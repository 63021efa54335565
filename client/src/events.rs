//! What the client logs, through `tracing`. The field `event` and the fields named here are stable.
//!
//! | event | level | fields | when |
//! | --- | --- | --- | --- |
//! | [`REDIS_ERROR`] | warn | `mailbox`, `cause`, `error`, `suppressed` | Redis gave no decision; at most once a second, `suppressed` counts those kept back since the last one |
//! | [`RECOVERED`] | info | `outage_ms`, `failures` | Redis answers again after a `REDIS_ERROR` |
//! | [`DENIED`] | info | `mailbox`, `reason`, `retry_after_ms` | a mail has to wait |
//! | [`TOO_LARGE`] | warn | `mailbox`, `recipients`, `error` | a mail has more recipients than a whole day |
//! | [`UNKNOWN_OUTCOME`] | warn | `mailbox`, `error` | a mail may have gone out or not: its budget stays used, and it is not sent again by itself |
//! | [`RELEASED`] | debug | `mailbox`, `reservation`, `was_open` | a reservation was given back |

use std::fmt::Display;

use tracing::{debug, info, warn};

use crate::Mailbox;
use crate::decision::{Decision, Denial, FailOpen, Reservation, TooLarge};
use crate::health::Recovery;

/// Redis gave no decision, and the mail goes out uncounted.
pub const REDIS_ERROR: &str = "mail.rateLimit.redisError";
/// Redis answers again.
pub const RECOVERED: &str = "mail.rateLimit.recovered";
/// A mail has to wait.
pub const DENIED: &str = "mail.rateLimit.denied";
/// A mail has more recipients than a whole day of its mailbox.
pub const TOO_LARGE: &str = "mail.rateLimit.tooLarge";
/// A mail may have gone out or not.
pub const UNKNOWN_OUTCOME: &str = "mail.rateLimit.unknownOutcome";
/// A reservation was given back.
pub const RELEASED: &str = "mail.rateLimit.released";

pub(crate) fn redis_error(mailbox: &Mailbox, failure: &FailOpen, suppressed: u64) {
    warn!(
        event = REDIS_ERROR,
        mailbox = mailbox.as_str(),
        cause = failure.cause.as_str(),
        error = failure.error,
        suppressed,
        "Redis gave no decision, mail goes out uncounted"
    );
}

pub(crate) fn recovered(recovery: &Recovery) {
    info!(
        event = RECOVERED,
        outage_ms = milliseconds(recovery.outage),
        failures = recovery.failures,
        "Redis answers again"
    );
}

/// Logs a decision that keeps a mail from going out; the others have nothing to tell, or have told it.
pub(crate) fn decided(mailbox: &Mailbox, recipients: u32, decision: &Decision) {
    match decision {
        Decision::Denied(denial) => denied(mailbox, denial),
        Decision::TooLarge(too_large) => self::too_large(mailbox, recipients, too_large),
        Decision::Allowed(_) | Decision::FailOpen(_) => {}
    }
}

pub(crate) fn denied(mailbox: &Mailbox, denial: &Denial) {
    info!(
        event = DENIED,
        mailbox = mailbox.as_str(),
        reason = denial.reason.as_str(),
        retry_after_ms = milliseconds(denial.retry_after),
        "mail has to wait"
    );
}

fn too_large(mailbox: &Mailbox, recipients: u32, too_large: &TooLarge) {
    warn!(
        event = TOO_LARGE,
        mailbox = mailbox.as_str(),
        recipients,
        error = too_large.message,
        "mail has more recipients than a whole day of its mailbox"
    );
}

pub(crate) fn unknown_outcome(mailbox: &Mailbox, error: &dyn Display) {
    warn!(
        event = UNKNOWN_OUTCOME,
        mailbox = mailbox.as_str(),
        error = %error,
        "mail may have gone out, it is not sent again by itself"
    );
}

pub(crate) fn released(reservation: &Reservation, was_open: bool) {
    debug!(
        event = RELEASED,
        mailbox = reservation.mailbox.as_str(),
        reservation = reservation.id,
        was_open,
        "reservation given back"
    );
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
