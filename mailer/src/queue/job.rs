//! What stands in a job: which message, and where its mail is.

use serde::{Deserialize, Serialize};

use crate::message::MessageId;

/// The data of a job, as `docs/send-scheduled-messages.schema.json` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Since when the mail is to be sent, in ms since 1970; else the job's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// The mail (RFC 5322) in base64; either this or `mime_path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Where the mail is in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_path: Option<String>,
}
