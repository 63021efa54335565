//! The envelope of a mail that comes as MIME and without one.

use lettre::Address;
use lettre::address::Envelope;

use crate::headers::Headers;

/// The envelope that a mail's own headers make: from the first address of `Sender`, else of `From`,
/// to all in To, Cc and Bcc, with repeats.
///
/// `from`, if there is one, is the sender whatever the headers say.
///
/// ```
/// let mail = b"From: News <news@example.com>\nTo: a@example.net\nBcc: b@example.net\n\nHello.\n";
/// let envelope = mailrl_mailer::envelope_of(mail, None)?;
/// assert_eq!(envelope.from().unwrap().to_string(), "news@example.com");
/// assert_eq!(envelope.to().len(), 2);
/// # Ok::<_, mailrl_mailer::EnvelopeError>(())
/// ```
pub fn envelope_of(mail: &[u8], from: Option<&Address>) -> Result<Envelope, EnvelopeError> {
    let headers = headers_of(mail)?;
    let sender = match (from, headers.sender) {
        (Some(from), _) => from.clone(),
        (None, Some(sender)) => address(sender)?,
        (None, None) => return Err(EnvelopeError::NoSender),
    };
    if let Some(name) = headers.unaddressed.into_iter().next() {
        return Err(EnvelopeError::NotAnAddress(name));
    }
    let recipients = headers
        .recipients
        .into_iter()
        .map(address)
        .collect::<Result<Vec<_>, _>>()?;
    // The one thing that an envelope cannot do without.
    Envelope::new(Some(sender), recipients).map_err(|_| EnvelopeError::NoRecipient)
}

/// The sender of a mail whose recipients are known: the first address of `Sender`, else of `From`.
pub(crate) fn sender_of(mail: &[u8]) -> Result<Address, EnvelopeError> {
    address(headers_of(mail)?.sender.ok_or(EnvelopeError::NoSender)?)
}

fn headers_of(mail: &[u8]) -> Result<Headers, EnvelopeError> {
    if mail.starts_with(b"From ") {
        return Err(EnvelopeError::Mbox);
    }
    let headers = Headers::read(mail);
    if headers.end == 0 {
        return Err(EnvelopeError::NotAMail);
    }
    Ok(headers)
}

pub(crate) fn address(text: String) -> Result<Address, EnvelopeError> {
    text.parse().map_err(|_| EnvelopeError::NotAnAddress(text))
}

/// Why a mail's headers make no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// It does not begin with a header.
    #[error("not a mail: it does not begin with headers such as From, To and Subject")]
    NotAMail,
    /// It is a folder of mails.
    #[error("not one mail but an mbox of them, beginning with a line \"From \": please split it first")]
    Mbox,
    /// Neither `Sender` nor `From` holds an address.
    #[error("no sender: neither Sender nor From holds an address")]
    NoSender,
    /// None of To, Cc and Bcc names anyone.
    #[error("no recipient: none of To, Cc and Bcc names anyone")]
    NoRecipient,
    /// This stands where an address should.
    #[error("not a mail address: {0:?}")]
    NotAnAddress(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mail: &str) -> Result<(String, Vec<String>), EnvelopeError> {
        let envelope = envelope_of(mail.as_bytes(), None)?;
        let to = envelope.to().iter().map(ToString::to_string).collect();
        Ok((envelope.from().unwrap().to_string(), to))
    }

    #[test]
    fn everybody_in_to_cc_and_bcc_is_a_recipient_as_often_as_named() {
        let mail = "From: f@example.com\nTo: A <a@example.net>, b@example.net\nBcc: a@example.net\nCc: c@example.net\n\nTo: x@y.z\n";
        let (from, to) = read(mail).unwrap();
        assert_eq!(from, "f@example.com");
        assert_eq!(
            to,
            ["a@example.net", "b@example.net", "a@example.net", "c@example.net"]
        );
    }

    #[test]
    fn the_sender_goes_before_the_first_who_writes() {
        let sender = |mail| read(mail).unwrap().0;
        assert_eq!(sender("From: a@b.c, d@e.f\nTo: x@y.z\n\n"), "a@b.c");
        assert_eq!(sender("From: a@b.c\nSender: s@b.c\nTo: x@y.z\n\n"), "s@b.c");
        assert_eq!(sender("From: a@b.c\nSender:\nTo: x@y.z\n\n"), "a@b.c");
    }

    #[test]
    fn whoever_is_asked_for_sends_instead() {
        let from = "other@example.com".parse().unwrap();
        let sender = |mail: &str| envelope_of(mail.as_bytes(), Some(&from)).map(|it| it.from().cloned());
        assert_eq!(sender("From: a@b.c\nTo: x@y.z\n\n"), Ok(Some(from.clone())));
        assert_eq!(sender("From: nobody\nTo: x@y.z\n\n"), Ok(Some(from.clone())));
        assert_eq!(sender("To: x@y.z\n\n"), Ok(Some(from.clone())));
    }

    #[test]
    fn a_last_header_without_a_line_end_counts() {
        assert_eq!(read("From: a@b.c\nTo: x@y.z").unwrap().1, ["x@y.z"]);
    }

    #[test]
    fn what_makes_no_envelope_is_told_apart() {
        let no_mail = [
            "",
            "\n",
            "hello",
            "hello, this is text\nof two lines\n",
            "\u{1}\u{2}\0\n",
        ];
        for mail in no_mail {
            assert_eq!(read(mail).unwrap_err(), EnvelopeError::NotAMail, "{mail:?}");
        }
        assert_eq!(
            read("From a@b.c Mon Mar  1 10:00:00 2027\nFrom: a@b.c\nTo: x@y.z\n\n").unwrap_err(),
            EnvelopeError::Mbox
        );
        assert_eq!(read("To: x@y.z\n\n").unwrap_err(), EnvelopeError::NoSender);
        assert_eq!(read("From: a@b.c\n\n").unwrap_err(), EnvelopeError::NoRecipient);
        assert_eq!(
            read("From: a@b.c\nTo: undisclosed-recipients:;\n\n").unwrap_err(),
            EnvelopeError::NoRecipient
        );
        for wrong in [
            "Bob",
            "Bob <bob>",
            "a@b.c, Bob",
            "a@b@c.d",
            "a b@c.d",
            "<a@b.c\u{1}>",
        ] {
            let error = read(&format!("From: a@b.c\nTo: {wrong}\n\n")).unwrap_err();
            assert!(
                matches!(error, EnvelopeError::NotAnAddress(_)),
                "{wrong}: {error}"
            );
        }
    }
}
