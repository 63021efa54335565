//! What became of a mail whose send ended in an error.

use std::time::Duration;

/// What became of a mail whose send ended in an error; it decides what happens to the reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOutcome {
    /// It certainly did not go out: the reservation is given back.
    NotSent,
    /// It did not go out, and the provider asks the whole mailbox to wait for this long.
    Throttled {
        /// How long nobody should send from this mailbox.
        retry_after: Duration,
    },
    /// It may have gone out: the reservation is kept, and the mail must not be sent again by itself.
    Unknown,
}

/// An error of a mailer that says what became of the mail.
///
/// The decorator asks it after each failed send. An error that cannot tell must answer
/// [`MailOutcome::Unknown`]: a budget that is kept too long costs a delay, a mail that is sent
/// twice cannot be taken back.
pub trait SendFailure: std::error::Error {
    /// What became of the mail.
    fn mail_outcome(&self) -> MailOutcome;

    /// True if the mail was not sent and the very same mail would fail again: whoever tries failed
    /// mail again ends this one at once. The decorator does not ask.
    fn is_permanent(&self) -> bool {
        false
    }

    /// False if the mail was not sent for a reason that has nothing to do with it and was not even
    /// offered to the provider: whoever counts tries does not count this one. The decorator does not
    /// ask.
    fn was_tried(&self) -> bool {
        true
    }
}
