//! What the service logs, through `tracing`. The field `event` and the fields named here are stable.
//!
//! | event | level | fields | when |
//! | --- | --- | --- | --- |
//! | [`SENT`] | info | `message_id`, `mailbox` | the provider accepted a message |
//! | [`DEFERRED`] | info | `message_id`, `mailbox`, `reason`, `retry_after_ms`, `spread_ms`, `scheduled_on` | a message was denied and is put off |
//! | [`RETRIED`] | warn | `message_id`, `mailbox`, `reason`, `error`, `retry_after_ms`, `spread_ms`, `scheduled_on` | a message was certainly not sent (`failure`), or could not be tried (`unavailable`), and is tried again |
//! | [`FAILED`] | error | `message_id`, `mailbox`, `error` | a message was not sent and will not be |
//! | [`UNKNOWN`] | error | `message_id`, `mailbox`, `error` | a message may have been sent: a person decides |
//!
//! `scheduled_on` is in ms since 1970.

use tracing::{error, info, warn};

use super::{Deferral, DeferralReason, Delivery, DeliveryError};
use crate::message::MessageId;
use crate::time::{ms, whole_ms};

/// The provider accepted a message.
pub const SENT: &str = "mail.sent";
/// A message was denied and is put off.
pub const DEFERRED: &str = "mail.rateLimit.deferred";
/// A message was certainly not sent and is tried again.
pub const RETRIED: &str = "mail.retried";
/// A message was not sent and will not be.
pub const FAILED: &str = "mail.failed";
/// A message may have been sent.
pub const UNKNOWN: &str = "mail.unknown";

pub(crate) fn answered(id: &MessageId, mailbox: &str, answer: &Result<Delivery, DeliveryError>) {
    let message_id = id.as_str();
    match answer {
        Ok(Delivery::Sent) => info!(event = SENT, message_id, mailbox, "the mail is sent"),
        Ok(Delivery::Scheduled(deferral)) => scheduled(message_id, mailbox, deferral),
        Err(DeliveryError::Failed(error)) => {
            error!(
                event = FAILED,
                message_id, mailbox, error, "the mail was not sent and will not be"
            );
        }
        Err(DeliveryError::Unknown(error)) => {
            error!(
                event = UNKNOWN,
                message_id, mailbox, error, "the mail may have been sent: please decide"
            );
        }
    }
}

fn scheduled(message_id: &str, mailbox: &str, deferral: &Deferral) {
    let retry_after_ms = whole_ms(deferral.retry_after);
    let spread_ms = whole_ms(deferral.spread);
    let scheduled_on = ms(deferral.scheduled_on);
    match &deferral.reason {
        DeferralReason::Denied(reason) => info!(
            event = DEFERRED,
            message_id,
            mailbox,
            reason = reason.as_str(),
            retry_after_ms,
            spread_ms,
            scheduled_on,
            "the mail has to wait and is put off"
        ),
        DeferralReason::Failure(error) | DeferralReason::Unavailable(error) => warn!(
            event = RETRIED,
            message_id,
            mailbox,
            reason = deferral.reason.as_str(),
            error,
            retry_after_ms,
            spread_ms,
            scheduled_on,
            "the mail was not sent and is tried again"
        ),
    }
}
