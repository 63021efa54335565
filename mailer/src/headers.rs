//! The header fields of a mail that say whom it is from and whom it goes to.

use std::ops::Range;

use mail_parser::{Addr, Header, HeaderName, Message, MessageParser};

/// What of a mail's headers decides where it goes.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    /// The first address of `Sender`, else of `From`.
    pub(crate) sender: Option<String>,
    /// To, Cc and Bcc in the order in which they stand in the mail, with repeats.
    pub(crate) recipients: Vec<String>,
    /// Names in To, Cc and Bcc that stand there without an address.
    pub(crate) unaddressed: Vec<String>,
    /// Where the value of the first `Bcc` stands, from its colon to the end of its last line.
    pub(crate) bcc: Option<Range<usize>>,
    /// Where the last header ends; 0 if there is none.
    pub(crate) end: usize,
}

impl Headers {
    pub(crate) fn read(mail: &[u8]) -> Self {
        let found = Self::parse(mail);
        if found.end < mail.len() || mail.ends_with(b"\n") {
            return found;
        }
        // The parser does not see the value of a last header that has no line end.
        let mut found = Self::parse(&[mail, b"\n"].concat());
        found.bcc = found.bcc.map(|value| value.start..value.end.min(mail.len()));
        found
    }

    fn parse(mail: &[u8]) -> Self {
        let parser = MessageParser::new()
            .header_address(HeaderName::Sender)
            .header_address(HeaderName::From)
            .header_address(HeaderName::To)
            .header_address(HeaderName::Cc)
            .header_address(HeaderName::Bcc)
            .default_header_ignore();
        let mut found = Self::default();
        let mut from = None;
        let message = parser.parse_headers(mail);
        for header in message.iter().flat_map(Message::headers) {
            found.end = header.offset_end as usize;
            match header.name {
                HeaderName::Sender => found.sender = found.sender.or_else(|| first_address(header)),
                HeaderName::From => from = from.or_else(|| first_address(header)),
                HeaderName::To | HeaderName::Cc | HeaderName::Bcc => found.add_recipients(header),
                _ => {}
            }
        }
        found.sender = found.sender.or(from);
        found
    }

    fn add_recipients(&mut self, header: &Header<'_>) {
        if header.name == HeaderName::Bcc && self.bcc.is_none() {
            self.bcc = Some(header.offset_start as usize..header.offset_end as usize);
        }
        for one in addresses(header) {
            match (&one.address, &one.name) {
                (Some(address), _) => self.recipients.push(address.to_string()),
                (None, Some(name)) => self.unaddressed.push(name.to_string()),
                (None, None) => {}
            }
        }
    }
}

/// The first `Message-ID`, without its angle brackets.
pub(crate) fn message_id(mail: &[u8]) -> Option<String> {
    let parser = MessageParser::new()
        .header_id(HeaderName::MessageId)
        .default_header_ignore();
    let message = parser.parse_headers(mail)?;
    message.message_id().map(str::to_owned)
}

fn first_address(header: &Header<'_>) -> Option<String> {
    addresses(header).find_map(|one| one.address.as_deref().map(str::to_owned))
}

fn addresses<'h>(header: &'h Header<'_>) -> impl Iterator<Item = &'h Addr<'h>> {
    header
        .value
        .as_address()
        .into_iter()
        .flat_map(mail_parser::Address::iter)
}
