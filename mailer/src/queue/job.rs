//! What stands in a job: which message, and where its mail is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lettre::Address;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::store::mail_path;
use crate::envelope::{EnvelopeError, envelope};
use crate::message::{MailMessage, MessageId, Sender};
use crate::time::{ms, time};

/// 2020, in ms since 1970; what is earlier was given in seconds.
const EARLIEST: u64 = 1_577_836_800_000;
/// 2100, in ms since 1970; what is later was given in µs or ns.
const LATEST: u64 = 4_102_444_800_000;
/// Of an error, since what it quotes may be a whole mail.
const LONGEST_ERROR: usize = 300;

/// The data of a job, as `docs/send-scheduled-messages.schema.json` describes it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailJob {
    /// The message's name: a second job that names it does not send it again.
    pub message_id: MessageId,
    /// The tenant whose mailer sends it; else one of our own mailboxes, the envelope's sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The envelope's sender; else the mail's own `Sender` or `From`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The envelope's recipients; else the mail's own To, Cc and Bcc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// Since when the mail is to be sent, in ms since 1970; else the job's own time and its delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// The mail (RFC 5322) in base64; either this or `mime_path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Where the mail is in the store, below `messages/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_path: Option<String>,
}

/// A job that cannot be sent as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// Its data has not the form that it should have.
    #[error("the job's data is wrong at {field}: {error}. See docs/send-scheduled-messages.schema.json")]
    Form {
        /// Where in its data.
        field: String,
        /// What is wrong there.
        error: String,
    },
    /// Its mail gives no envelope.
    #[error("the job's mail: {0}; mend the mail, or give the job a from and a to")]
    Envelope(#[from] EnvelopeError),
}

impl JobError {
    fn at(field: &str, error: impl fmt::Display) -> Self {
        let mut error = error.to_string();
        if let Some((end, _)) = error.char_indices().nth(LONGEST_ERROR) {
            error.truncate(end);
            error.push('…');
        }
        let field = if field == "." { "the top" } else { field };
        Self::Form {
            field: field.to_owned(),
            error,
        }
    }
}

impl MailJob {
    /// A job for a message whose mail is kept at `mime_path` in the store.
    #[must_use]
    pub fn new(message: &MailMessage, mime_path: String) -> Self {
        let envelope = &message.envelope;
        Self {
            message_id: message.id.clone(),
            tenant: match &message.sender {
                Sender::Tenant(name) => Some(name.clone()),
                Sender::SystemMailbox => None,
            },
            from: envelope.from().map(ToString::to_string),
            to: Some(envelope.to().iter().map(ToString::to_string).collect()),
            created_at: Some(ms(message.created_at)),
            mime: None,
            mime_path: Some(mime_path),
        }
    }

    /// The job in a queue's data, all that can be checked without the store checked.
    pub fn parse(data: &Value) -> Result<Self, JobError> {
        let job: Self = serde_path_to_error::deserialize(data)
            .map_err(|error| JobError::at(&error.path().to_string(), error.inner()))?;
        job.check()?;
        Ok(job)
    }

    fn check(&self) -> Result<(), JobError> {
        if self.tenant.as_deref().is_some_and(|name| name.trim().is_empty()) {
            return Err(JobError::at(
                "tenant",
                "it is empty; leave it out for a mailbox of our own",
            ));
        }
        self.sender()?;
        self.recipients()?;
        if let Some(created_at) = self.created_at
            && !(EARLIEST..=LATEST).contains(&created_at)
        {
            let error = format!("{created_at} is not from 2020 to 2100; give ms since 1970");
            return Err(JobError::at("created_at", error));
        }
        match (&self.mime, &self.mime_path) {
            (Some(_), Some(_)) => Err(JobError::at(
                "mime_path",
                "there is a mime, too; give one of them",
            )),
            (None, None) => Err(JobError::at(
                "the top",
                "there is no mail; give it as mime (in base64) or as mime_path (its place in the store)",
            )),
            (Some(_), None) => self.inline_mime().map(|_| ()),
            (None, Some(path)) => match mail_path(path) {
                Ok(_) => Ok(()),
                Err(error) => Err(JobError::at("mime_path", error)),
            },
        }
    }

    /// The mail, if it stands in the job itself.
    pub fn inline_mime(&self) -> Result<Option<Bytes>, JobError> {
        let Some(mime) = &self.mime else {
            return Ok(None);
        };
        let mail = STANDARD.decode(mime).map_err(|error| {
            JobError::at(
                "mime",
                format!("{error}; give standard base64 with padding, in one line"),
            )
        })?;
        if mail.is_empty() {
            return Err(JobError::at("mime", "it is empty"));
        }
        Ok(Some(mail.into()))
    }

    /// The message, with its mail from the job or from the store. It was to be sent since the job's own
    /// `timestamp` (ms since 1970), unless the job says otherwise.
    pub fn message(&self, mime: Bytes, timestamp: u64) -> Result<MailMessage, JobError> {
        Ok(MailMessage {
            id: self.message_id.clone(),
            sender: self.tenant.clone().map_or(Sender::SystemMailbox, Sender::Tenant),
            envelope: envelope(&mime, self.sender()?.as_ref(), self.recipients()?)?,
            mime,
            created_at: time(self.created_at.unwrap_or(timestamp)),
            failures: 0,
        })
    }

    /// What a record keeps of it: all but the mail itself.
    #[must_use]
    pub fn without_mime(&self) -> Self {
        Self {
            mime: None,
            ..self.clone()
        }
    }

    fn sender(&self) -> Result<Option<Address>, JobError> {
        self.from.as_deref().map(|from| address("from", from)).transpose()
    }

    fn recipients(&self) -> Result<Option<Vec<Address>>, JobError> {
        let Some(to) = &self.to else {
            return Ok(None);
        };
        if to.is_empty() {
            return Err(JobError::at(
                "to",
                "it is empty; leave it out to send to those in the mail's headers",
            ));
        }
        let addresses = to
            .iter()
            .enumerate()
            .map(|(index, one)| address(&format!("to[{index}]"), one));
        addresses.collect::<Result<_, _>>().map(Some)
    }
}

fn address(field: &str, text: &str) -> Result<Address, JobError> {
    text.parse().map_err(|_| {
        JobError::at(
            field,
            format!("{text:?} is no mail address; give one as name@example.com"),
        )
    })
}

impl fmt::Debug for MailJob {
    /// Leaves the mail out: it is long, and not for logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MailJob")
            .field("message_id", &self.message_id)
            .field("tenant", &self.tenant)
            .field("from", &self.from)
            .field("to", &self.to)
            .field("created_at", &self.created_at)
            .field("mime", &self.mime.as_ref().map(String::len))
            .field("mime_path", &self.mime_path)
            .finish()
    }
}

#[cfg(test)]
mod tests;
