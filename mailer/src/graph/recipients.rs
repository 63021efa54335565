//! Sees to it that a mail's headers name exactly the envelope's recipients.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use lettre::address::{Address, Envelope};

use crate::headers::Headers;

/// RFC 5322, section 2.1.1: lines should not exceed 78 characters.
const LONGEST_LINE: usize = 76;

/// Why a mail cannot be addressed as its envelope wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AddressingError {
    /// This recipient stands in the headers only.
    NotInEnvelope(String),
    /// This recipient cannot stand in a header.
    NotAnAddress(String),
    /// The mail begins with white space, so no header can be put before it.
    BeginsWithSpace,
}

/// The mail with a `Bcc` for those envelope recipients that stand in none of To, Cc and Bcc; every
/// other byte is as it was.
///
/// Addresses are compared without regard to case in ASCII. One that the envelope repeats is added
/// once.
pub(super) fn address<'m>(envelope: &Envelope, mail: &'m [u8]) -> Result<Cow<'m, [u8]>, AddressingError> {
    let envelope = envelope.to().iter().map(AsRef::<str>::as_ref);
    let wanted = envelope.clone().map(folded).collect::<HashSet<_>>();
    let headers = Headers::read(mail);
    headers.check_all_in(&wanted)?;
    let mut present = headers.folded();
    let missing = envelope
        .filter(|one| present.insert(folded(one)))
        .collect::<Vec<_>>();
    if missing.is_empty() {
        return Ok(Cow::Borrowed(mail));
    }
    if let Some(wrong) = missing.iter().find(|one| is_risky(one)) {
        return Err(AddressingError::NotAnAddress((*wrong).to_owned()));
    }
    let addressed = match headers.bcc {
        Some(value) => insert_into_bcc(mail, value, &missing),
        None => prepend_bcc(mail, &missing)?,
    };
    // What was added must be read back as what was meant.
    let headers = Headers::read(&addressed);
    if let Some(lost) = wanted.difference(&headers.folded()).next() {
        return Err(AddressingError::NotAnAddress(lost.clone()));
    }
    headers.check_all_in(&wanted)?;
    Ok(Cow::Owned(addressed))
}

impl Headers {
    fn folded(&self) -> HashSet<String> {
        self.recipients.iter().map(|one| folded(one)).collect()
    }

    fn check_all_in(&self, wanted: &HashSet<String>) -> Result<(), AddressingError> {
        match self.recipients.iter().find(|one| !wanted.contains(&folded(one))) {
            Some(extra) => Err(AddressingError::NotInEnvelope(extra.clone())),
            None => Ok(()),
        }
    }
}

fn folded(address: &str) -> String {
    address.to_ascii_lowercase()
}

/// A lettre `Address` made with `new_dangerous` can hold anything: what would break the header is
/// found here, what would name somebody else when the header is read back.
fn is_risky(address: &str) -> bool {
    let is_quoted_wrongly = || address.contains('"') && address.parse::<Address>().is_err();
    address.chars().any(char::is_control) || is_quoted_wrongly()
}

/// RFC 5322 allows one `Bcc`, so those that are missing go to the front of the one that is there.
fn insert_into_bcc(mail: &[u8], value: Range<usize>, missing: &[&str]) -> Vec<u8> {
    let line_end = line_end(mail);
    let mut added = address_list(missing, line_end);
    let there = &mail[value.clone()];
    if !there.trim_ascii().is_empty() {
        added.push(',');
        match there.first() {
            Some(b'\r' | b'\n') => {}
            Some(b' ' | b'\t') => added.push_str(line_end),
            _ => {
                added.push_str(line_end);
                added.push(' ');
            }
        }
    }
    [&mail[..value.start], added.as_bytes(), &mail[value.start..]].concat()
}

fn prepend_bcc(mail: &[u8], missing: &[&str]) -> Result<Vec<u8>, AddressingError> {
    if matches!(mail.first(), Some(b' ' | b'\t')) {
        return Err(AddressingError::BeginsWithSpace);
    }
    let line_end = line_end(mail);
    let header = format!("Bcc:{}{line_end}", address_list(missing, line_end));
    Ok([header.as_bytes(), mail].concat())
}

/// The mail's own line ending: that of its first line.
fn line_end(mail: &[u8]) -> &'static str {
    match mail.iter().position(|byte| *byte == b'\n') {
        Some(at) if at == 0 || mail[at - 1] != b'\r' => "\n",
        _ => "\r\n",
    }
}

/// A space, the addresses with commas between them, folded, and no line end.
fn address_list(addresses: &[&str], line_end: &str) -> String {
    let mut list = String::new();
    let mut column = "Bcc:".len();
    for (index, address) in addresses.iter().enumerate() {
        if index > 0 {
            list.push(',');
            column += 1;
        }
        let address = in_header(address);
        let width = address.chars().count() + 2;
        if index > 0 && column + width > LONGEST_LINE {
            list.push_str(line_end);
            column = 0;
        }
        list.push(' ');
        list.push_str(&address);
        column += width - 1;
    }
    list
}

/// Within angle brackets where the local part is quoted: not everybody reads it without.
fn in_header(address: &str) -> Cow<'_, str> {
    if address.starts_with('"') {
        Cow::Owned(format!("<{address}>"))
    } else {
        Cow::Borrowed(address)
    }
}

#[cfg(test)]
mod tests;
