//! What a reservation is called.

use std::fmt;

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
    const LONGEST: usize = 31;

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

    /// Gives the id as text. As [`fmt::Display`], but without an allocation or the formatter's cost.
    pub fn write(self, text: &mut IdText) -> &[u8] {
        let IdText { bytes, ms, seq } = text;
        let mut len = 0_usize;
        for part in [ms.format(self.ms), "-", seq.format(self.seq)] {
            let end = len.saturating_add(part.len());
            if let Some(place) = bytes.get_mut(len..end) {
                place.copy_from_slice(part.as_bytes());
                len = end;
            }
        }
        bytes.get(..len).unwrap_or_default()
    }
}

/// Room for an id as text.
pub struct IdText {
    bytes: [u8; ReservationId::LONGEST],
    ms: itoa::Buffer,
    seq: itoa::Buffer,
}

impl Default for IdText {
    fn default() -> Self {
        Self {
            bytes: [0; ReservationId::LONGEST],
            ms: itoa::Buffer::new(),
            seq: itoa::Buffer::new(),
        }
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}
