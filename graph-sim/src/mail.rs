//! What of a mail the simulator looks at and keeps.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{HeaderName, HeaderValue, MessageParser};
use serde::{Serialize, Serializer};

/// A mail that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredMessage {
    /// The mailbox in the address of the request, in lower case.
    pub mailbox: String,
    /// To, Cc and Bcc, in this order, with repeats, as they stand in the mail.
    pub recipients: Vec<String>,
    /// The `Subject`, decoded; empty if there is none.
    pub subject: String,
    /// The `Message-ID` without its angle brackets.
    pub message_id: Option<String>,
    /// When it was accepted, in milliseconds since 1970.
    pub accepted_at_ms: u64,
    /// The size of the MIME in bytes.
    pub size: usize,
    /// The MIME itself, if the simulator was told to keep it; base64 in JSON.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_base64")]
    pub raw: Option<Vec<u8>>,
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn as_base64<S: Serializer>(raw: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&STANDARD.encode(raw.as_deref().unwrap_or_default()))
}

/// A mail as it was posted.
pub(crate) struct Mail {
    pub(crate) recipients: Vec<String>,
    pub(crate) subject: String,
    pub(crate) message_id: Option<String>,
    pub(crate) raw: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rubbish {
    NotBase64,
    NoRecipients,
}

impl Mail {
    /// Reads the body of a `sendMail` request, which may be broken into lines.
    pub(crate) fn decode(mut body: Vec<u8>) -> Result<Self, Rubbish> {
        body.retain(|byte| !byte.is_ascii_whitespace());
        let mut raw = STANDARD.decode(&body).map_err(|_| Rubbish::NotBase64)?;
        // The parser does not see the value of a last header that has no line end.
        raw.push(b'\n');
        let message = MessageParser::new()
            .with_address_headers()
            .header_text(HeaderName::Subject)
            .header_id(HeaderName::MessageId)
            .default_header_ignore()
            .parse_headers(&raw)
            .ok_or(Rubbish::NoRecipients)?;
        let of = |wanted: &HeaderName| {
            let named = message.headers().iter().filter(|header| header.name == *wanted);
            named
                .filter_map(|header| header.value.as_address())
                .flat_map(mail_parser::Address::iter)
                .filter_map(|one| one.address.as_deref().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let recipients = [HeaderName::To, HeaderName::Cc, HeaderName::Bcc]
            .iter()
            .flat_map(of)
            .collect::<Vec<_>>();
        if recipients.is_empty() {
            return Err(Rubbish::NoRecipients);
        }
        let text = |name: HeaderName<'static>| {
            message
                .header(name)
                .and_then(HeaderValue::as_text)
                .map(str::to_owned)
        };
        let subject = text(HeaderName::Subject).unwrap_or_default();
        let message_id = text(HeaderName::MessageId);
        raw.pop();
        Ok(Self {
            recipients,
            subject,
            message_id,
            raw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(mime: &str) -> Result<Mail, Rubbish> {
        Mail::decode(STANDARD.encode(mime).into_bytes())
    }

    #[test]
    fn recipients_are_to_cc_and_bcc_of_all_headers_and_groups_with_repeats() {
        let mail = decode(concat!(
            "From: a@example.com\r\n",
            "To: One <one@example.net>, two@example.net\r\n",
            "Bcc: four@example.net,\r\n ONE@example.net\r\n",
            "Cc: Team: three@example.net, two@example.net;\r\n",
            "To: late@example.net\r\n",
            "Subject: =?utf-8?q?caf=C3=A9?=\r\n",
            "Message-ID: <1@example.com>\r\n",
            "\r\nTo: nobody@example.net\r\n",
        ))
        .unwrap();
        let expected = ["one", "two", "late", "three", "two", "four", "ONE"];
        assert_eq!(
            mail.recipients,
            expected.map(|name| format!("{name}@example.net"))
        );
        assert_eq!(mail.subject, "café");
        assert_eq!(mail.message_id.as_deref(), Some("1@example.com"));
    }

    #[test]
    fn a_last_header_without_a_line_end_counts_and_the_mail_is_kept_as_it_is() {
        let mail = decode("To: a@example.net\r\nBcc: b@example.net").unwrap();
        assert_eq!(mail.recipients, ["a@example.net", "b@example.net"]);
        assert!(mail.raw.ends_with(b"b@example.net"));
    }

    #[test]
    fn base64_may_be_broken_into_lines_and_nothing_else() {
        let mail = Mail::decode(b"VG86IGFAZXhhb\r\nXBsZS5jb20NCg==\n".to_vec()).unwrap();
        assert_eq!(mail.raw, b"To: a@example.com\r\n");
        assert_eq!(
            Mail::decode(b"To: a@example.com".to_vec()).err(),
            Some(Rubbish::NotBase64)
        );
        assert_eq!(
            Mail::decode(b"VG86IGFAZXhhbXBsZS5jb20NCg".to_vec()).err(),
            Some(Rubbish::NotBase64)
        );
    }

    #[test]
    fn a_mail_to_nobody_is_rubbish() {
        for mime in [
            "",
            "\r\n",
            "Subject: x\r\n\r\nhello",
            "To: undisclosed-recipients:;\r\n\r\nhello",
        ] {
            assert_eq!(decode(mime).err(), Some(Rubbish::NoRecipients), "{mime:?}");
        }
    }
}
