//! A message: one mail, the name by which it is known, and who sends it.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use bytes::Bytes;
use lettre::address::Envelope;
use mailrl_client::Mailbox;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::headers::message_id;

const LONGEST_ID: usize = 200;

/// What a message is called, wherever it is spoken of: in the queue, in its record, in logs.
///
/// 1 to 200 printable ASCII characters without spaces and colons, and no number (nor `NaN`), since
/// `BullMQ` numbers jobs without a name and takes colons for its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId(String);

/// An id that no message can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no message id: use 1 to {LONGEST_ID} printable ASCII characters, without spaces and colons, and no \
     number"
)]
pub struct MessageIdError(String);

impl MessageId {
    /// One that no other message has.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    /// The mail's own `Message-ID` without its angle brackets, if it has one that can be an id.
    #[must_use]
    pub fn of_mail(mail: &[u8]) -> Option<Self> {
        message_id(mail)?.try_into().ok()
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MessageId {
    type Error = MessageIdError;

    fn try_from(id: String) -> Result<Self, MessageIdError> {
        let fits = (1..=LONGEST_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
            && !is_number(&id);
        if fits {
            Ok(Self(id))
        } else {
            Err(MessageIdError(id))
        }
    }
}

/// What JavaScript reads as an integer and writes the same: `BullMQ` takes no such job id.
fn is_number(id: &str) -> bool {
    let digits = id.strip_prefix('-').unwrap_or(id);
    id == "NaN" || digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl FromStr for MessageId {
    type Err = MessageIdError;

    fn from_str(id: &str) -> Result<Self, MessageIdError> {
        id.to_owned().try_into()
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> Self {
        id.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whose mailer sends a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sender {
    /// That of a tenant, by the name that the configuration gives it.
    Tenant(String),
    /// That of the mailbox in the envelope, one of our own.
    SystemMailbox,
}

/// A mail that is to be sent once.
#[derive(Debug, Clone)]
pub struct MailMessage {
    /// Its name; the same for every try.
    pub id: MessageId,
    /// Whose mailer sends it.
    pub sender: Sender,
    /// From whom to whom.
    pub envelope: Envelope,
    /// The mail itself (RFC 5322).
    pub mime: Bytes,
    /// Since when it is to be sent: its age counts from here.
    pub created_at: SystemTime,
    /// How many tries have certainly failed so far; being denied is no try.
    pub failures: u32,
}

impl MailMessage {
    /// The mailbox that sends it, as its budget is kept; empty if its envelope names none.
    #[must_use]
    pub fn mailbox(&self) -> String {
        let sender = self.envelope.from();
        sender.map_or_else(String::new, |sender| Mailbox::from(sender).as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_printable_and_no_number() {
        for id in ["a", "4711-b", "<x.1@example.com>", "{a}/b%c", &"x".repeat(200)] {
            assert_eq!(id.parse::<MessageId>().unwrap().as_str(), id);
        }
        for id in [
            "",
            "-",
            "4711",
            "-5",
            "NaN",
            "a b",
            "a:b",
            "a\n",
            "ä",
            "a\u{7f}",
            &"x".repeat(201),
        ] {
            assert!(id.parse::<MessageId>().is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_mails_own_message_id_is_an_id_if_it_can_be() {
        let of = |header: &str| {
            let mail = format!("From: a@b.c\r\n{header}To: x@y.z\r\n\r\nMessage-ID: <body@b.c>\r\n");
            MessageId::of_mail(mail.as_bytes()).map(String::from)
        };
        assert_eq!(of("Message-ID: <1.x@b.c>\r\n").as_deref(), Some("1.x@b.c"));
        assert_eq!(of("message-id:\r\n <1.x@b.c>\r\n").as_deref(), Some("1.x@b.c"));
        for none in [
            "",
            "Message-ID:\r\n",
            "Message-ID: <4711>\r\n",
            "Message-ID: <[::1]@b.c>\r\n",
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_wrong_id_in_json_is_an_error_that_says_what_to_do() {
        let error = serde_json::from_str::<MessageId>("\"a:b\"")
            .unwrap_err()
            .to_string();
        assert!(error.contains("\"a:b\" is no message id: use"), "{error}");
    }
}
