//! The name of a mailbox, and the one Redis key in which its state stands.

use std::fmt;
use std::sync::Arc;

use lettre::Address;

const KEY_PREFIX: &str = "mailrl:";

/// A mailbox as its budget is kept: trimmed and lower-cased in ASCII, any other byte as it is.
///
/// Only ASCII is touched, so that a client in any language comes to the same key.
///
/// ```
/// use mailrl_client::Mailbox;
///
/// let mailbox = Mailbox::new(" Orders@Example.com\n");
/// assert_eq!(mailbox.as_str(), "orders@example.com");
/// assert_eq!(mailbox.key(), "mailrl:orders@example.com");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mailbox {
    key: Arc<str>,
}

impl Mailbox {
    /// The mailbox of this address.
    #[must_use]
    pub fn new(address: impl AsRef<str>) -> Self {
        let address = address.as_ref().trim_ascii().to_ascii_lowercase();
        Self {
            key: format!("{KEY_PREFIX}{address}").into(),
        }
    }

    /// The mailbox without the key's prefix.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.key[KEY_PREFIX.len()..]
    }

    /// The Redis key of the mailbox: `mailrl:<mailbox>`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl From<&Address> for Mailbox {
    fn from(address: &Address) -> Self {
        Self::new(address)
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mailbox({:?})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writings_that_differ_in_ascii_case_and_margin_are_one_mailbox() {
        assert_eq!(
            Mailbox::new("A.B@Example.COM"),
            Mailbox::new("\ta.b@example.com ")
        );
    }

    #[test]
    fn bytes_beyond_ascii_are_kept_as_they_are() {
        assert_eq!(Mailbox::new("ÄRGER@MÜNCHEN.de").key(), "mailrl:Ärger@mÜnchen.de");
        assert_eq!(Mailbox::new("\u{a0}a@b\u{a0}").key(), "mailrl:\u{a0}a@b\u{a0}");
    }
}
