//! Why a mail was not accepted, and what became of it.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use mailrl_client::{MailOutcome, SendFailure};
use reqwest::StatusCode;

use super::answer::Answer;
use super::recipients::AddressingError;
use super::token::TokenError;

/// A mail that Graph did not accept, or of which nobody knows.
///
/// [`mail_outcome`](SendFailure::mail_outcome) says what became of the mail; the questions here say
/// why. Nothing of a secret or a token is ever in it.
pub struct GraphError {
    kind: Box<Kind>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Mail(MailFault),
    Token(TokenError),
    TimedOut { written: bool },
    Connection { written: bool, source: reqwest::Error },
    Answer(Answer),
}

/// What is wrong with a mail that no request was made for.
#[derive(Debug)]
pub(super) enum MailFault {
    NoSender,
    Addressing(AddressingError),
    TooLarge { encoded: usize, limit: usize },
}

impl GraphError {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }

    /// A request that failed without an answer.
    pub(super) fn request(source: reqwest::Error, written: bool) -> Self {
        if source.is_timeout() {
            return Self::new(Kind::TimedOut { written });
        }
        Self::new(Kind::Connection {
            written,
            source: source.without_url(),
        })
    }

    /// True if the mail itself is at fault: no sender, recipients that differ from the envelope's,
    /// more than 4 MB. No request was made; it will never do as it is.
    #[must_use]
    pub fn is_mail(&self) -> bool {
        matches!(*self.kind, Kind::Mail(_))
    }

    /// True if there was no access token, and so no request for the mail.
    #[must_use]
    pub fn is_token(&self) -> bool {
        matches!(*self.kind, Kind::Token(_))
    }

    /// True if the time ran out.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match &*self.kind {
            Kind::TimedOut { .. } => true,
            Kind::Token(error) => error.is_timeout(),
            _ => false,
        }
    }

    /// True if there was no connection to Graph, or it broke.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        matches!(*self.kind, Kind::Connection { .. })
    }

    /// True if Graph asked the mailbox to wait.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        matches!(self.mail_outcome(), MailOutcome::Throttled { .. })
    }

    /// The HTTP status, if Graph answered.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|answer| answer.status.as_u16())
    }

    /// Graph's error code, such as `ErrorAccessDenied`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.answer()?.code.as_deref()
    }

    /// Graph's `request-id`, by which Microsoft's support finds the request.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.answer()?.request_id.as_deref()
    }

    /// How long Graph asked to wait, if it did: from 1 s to 24 h.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.answer()?.retry_after
    }

    fn answer(&self) -> Option<&Answer> {
        match &*self.kind {
            Kind::Answer(answer) => Some(answer),
            _ => None,
        }
    }
}

impl SendFailure for GraphError {
    fn mail_outcome(&self) -> MailOutcome {
        match &*self.kind {
            Kind::Mail(_)
            | Kind::Token(_)
            | Kind::TimedOut { written: false }
            | Kind::Connection { written: false, .. } => MailOutcome::NotSent,
            Kind::TimedOut { written: true } | Kind::Connection { written: true, .. } => MailOutcome::Unknown,
            Kind::Answer(answer) => answer.outcome(),
        }
    }

    /// A fault of the mail, or a 4xx that is no throttle. 401 speaks of the token, not of the mail,
    /// and the next try takes a new one.
    fn is_permanent(&self) -> bool {
        match &*self.kind {
            Kind::Mail(_) => true,
            Kind::Answer(answer) => {
                answer.status.is_client_error()
                    && answer.status != StatusCode::UNAUTHORIZED
                    && self.mail_outcome() == MailOutcome::NotSent
            }
            Kind::Token(_) | Kind::TimedOut { .. } | Kind::Connection { .. } => false,
        }
    }
}

impl From<MailFault> for GraphError {
    fn from(fault: MailFault) -> Self {
        Self::new(Kind::Mail(fault))
    }
}

impl From<AddressingError> for GraphError {
    fn from(error: AddressingError) -> Self {
        MailFault::Addressing(error).into()
    }
}

impl From<TokenError> for GraphError {
    fn from(error: TokenError) -> Self {
        Self::new(Kind::Token(error))
    }
}

impl From<Answer> for GraphError {
    fn from(answer: Answer) -> Self {
        Self::new(Kind::Answer(answer))
    }
}

impl fmt::Debug for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GraphError").field(&self.kind).finish()
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Mail(fault) => write!(f, "{fault}")?,
            Kind::Token(error) => write!(f, "no access token for Microsoft Graph: {error}")?,
            Kind::TimedOut { .. } => f.write_str("Microsoft Graph did not answer in time")?,
            Kind::Connection { source, .. } => {
                write!(
                    f,
                    "the connection to Microsoft Graph failed: {}",
                    root_cause(source)
                )?;
            }
            Kind::Answer(answer) => write!(f, "{answer}")?,
        }
        f.write_str(match self.mail_outcome() {
            MailOutcome::NotSent => "; the mail was not sent",
            MailOutcome::Throttled { .. } => "; the mail was not sent, its mailbox must wait",
            MailOutcome::Unknown => "; the mail may have been sent",
        })
    }
}

impl StdError for GraphError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.kind {
            Kind::Connection { source, .. } => Some(source),
            Kind::Token(error) => error.source(),
            _ => None,
        }
    }
}

impl fmt::Display for MailFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSender => f.write_str(
                "the envelope has no sender, and the sender is the mailbox that sends. Please give the mail a From",
            ),
            Self::Addressing(AddressingError::NotInEnvelope(recipient)) => write!(
                f,
                "recipient in the headers but not in the envelope: {recipient}. Graph would send to it; \
                 please take it out of the headers or into the envelope"
            ),
            Self::Addressing(AddressingError::NotAnAddress(recipient)) => {
                write!(f, "recipient cannot be written as an address: {recipient:?}")
            }
            Self::Addressing(AddressingError::BeginsWithSpace) => {
                f.write_str("the mail begins with white space instead of a header")
            }
            Self::TooLarge { encoded, limit } => write!(
                f,
                "the mail is {encoded} bytes in base64, and Graph takes {limit} at most, which is about 3 MB of \
                 mail with its attachments"
            ),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Microsoft Graph answered {}", self.status.as_u16())?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        if let Some(wait) = self.retry_after {
            write!(f, " (retry after {} s)", wait.as_secs_f64())?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (request-id {id})")?;
        }
        Ok(())
    }
}

/// The innermost cause, which is the one that says something ("Connection refused").
pub(super) fn root_cause<'e>(error: &'e (dyn StdError + 'static)) -> &'e (dyn StdError + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}
