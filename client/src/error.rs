//! Why a mail did not go out through the decorator.

use std::time::Duration;

use crate::decision::{Denial, DenialReason, TooLarge};
use crate::outcome::{MailOutcome, SendFailure};

/// A mail that did not go out and may be sent again after `retry_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mailbox's rate limit is reached ({reason}), try again in {retry_after:?}")]
pub struct MailRateLimitExceeded {
    /// What stands in its way.
    pub reason: DenialReason,
    /// How long to wait.
    pub retry_after: Duration,
}

impl From<Denial> for MailRateLimitExceeded {
    fn from(Denial { reason, retry_after }: Denial) -> Self {
        Self { reason, retry_after }
    }
}

/// Why a mail did not go out (or may have, if [`Self::may_have_been_sent`]); `E` is the error of the
/// mailer inside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateLimitedError<E> {
    /// It has to wait.
    #[error(transparent)]
    Exceeded(#[from] MailRateLimitExceeded),
    /// It has more recipients than its mailbox has in a whole day: no waiting will help.
    #[error("the mail will never fit its mailbox's limit: {0}")]
    TooLarge(#[from] TooLarge),
    /// Its envelope names no sender, so there is no mailbox whose budget could be used.
    #[error("the mail's envelope has no sender: set one, it is the mailbox that pays for the mail")]
    NoSender,
    /// Its envelope names no recipient.
    #[error("the mail's envelope has no recipient: add one")]
    NoRecipients,
    /// The mailer inside failed.
    #[error(transparent)]
    Send(E),
}

impl<E> RateLimitedError<E> {
    /// True if the mail may be sent again after a while, which [`Self::exceeded`] tells.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.exceeded().is_some()
    }

    /// Why and how long the mail has to wait, if that is all that is wrong with it.
    #[must_use]
    pub fn exceeded(&self) -> Option<&MailRateLimitExceeded> {
        match self {
            Self::Exceeded(exceeded) => Some(exceeded),
            _ => None,
        }
    }

    /// True if the mail has more recipients than a whole day of its mailbox.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge(_))
    }

    /// True if the envelope lacks a sender or a recipient.
    #[must_use]
    pub fn is_envelope(&self) -> bool {
        matches!(self, Self::NoSender | Self::NoRecipients)
    }

    /// True if the mailer inside failed.
    #[must_use]
    pub fn is_send(&self) -> bool {
        matches!(self, Self::Send(_))
    }
}

impl<E: SendFailure + 'static> RateLimitedError<E> {
    /// True if the mail may have gone out all the same: it must not be sent again by itself.
    #[must_use]
    pub fn may_have_been_sent(&self) -> bool {
        self.mail_outcome() == MailOutcome::Unknown
    }
}

impl<E: SendFailure + 'static> SendFailure for RateLimitedError<E> {
    /// Only the provider's own refusal concerns a whole mailbox; a denial of one decorator is no
    /// reason for the next one to pause.
    fn mail_outcome(&self) -> MailOutcome {
        match self {
            Self::Exceeded(MailRateLimitExceeded {
                reason: DenialReason::Upstream,
                retry_after,
            }) => MailOutcome::Throttled {
                retry_after: *retry_after,
            },
            Self::Send(error) => error.mail_outcome(),
            Self::Exceeded(_) | Self::TooLarge(_) | Self::NoSender | Self::NoRecipients => {
                MailOutcome::NotSent
            }
        }
    }

    fn is_permanent(&self) -> bool {
        match self {
            Self::Exceeded(_) => false,
            Self::TooLarge(_) | Self::NoSender | Self::NoRecipients => true,
            Self::Send(error) => error.is_permanent(),
        }
    }

    fn was_tried(&self) -> bool {
        match self {
            Self::Send(error) => error.was_tried(),
            Self::Exceeded(_) | Self::TooLarge(_) | Self::NoSender | Self::NoRecipients => true,
        }
    }
}
