//! What a reservation is called.

use std::fmt;
use std::io::Write as _;

/// The name of a reservation: `<ms>-<seq>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReservationId {
    /// When it was made, in ms since 1970.
    pub ms: u64,
    /// Its number among those of its mailbox.
    pub seq: u32,
}

impl ReservationId {
    /// The longest text of an id: 20 digits, the dash and 10 digits.
    pub const LONGEST: usize = 31;

    /// Reads `<ms>-<seq>`, two decimal numbers and nothing else.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (ms, seq) = std::str::from_utf8(text).ok()?.split_once('-')?;
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(ms) || !digits(seq) {
            return None;
        }
        Some(Self {
            ms: ms.parse().ok()?,
            seq: seq.parse().ok()?,
        })
    }

    /// Writes the id as text, and gives the part of `text` that it takes. As [`fmt::Display`], but
    /// without an allocation.
    pub fn write(self, text: &mut [u8; Self::LONGEST]) -> &str {
        let mut rest = &mut text[..];
        let written = write!(rest, "{self}").is_ok();
        let left = rest.len();
        let len = Self::LONGEST.saturating_sub(left);
        text.get(..len)
            .filter(|_| written)
            .and_then(|text| std::str::from_utf8(text).ok())
            .unwrap_or_default()
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}
