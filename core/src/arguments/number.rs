//! Numbers among the arguments.

use std::ops::RangeInclusive;

/// Limits, recipients: an integer from 1 to 4,294,967,295.
pub const LIMIT: RangeInclusive<u32> = 1..=u32::MAX;

/// What a text longer than this is cut to in an error.
const SHOWN: usize = 32;

/// Reads a number in a range.
pub fn number(name: &str, text: &[u8], range: &RangeInclusive<u32>) -> Result<u32, String> {
    let number = digits(text);
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        format!(
            "{name} must be an integer from {} to {}, not '{}'",
            range.start(),
            range.end(),
            shown(text)
        )
    })
}

/// The number that a text of decimal digits is, if it is one of at most 32 bits.
fn digits(text: &[u8]) -> Option<u32> {
    let number = text.iter().try_fold(0_u32, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    });
    number.filter(|_| !text.is_empty())
}

/// A caller's text in an error: short, and without what a terminal or a log would take amiss.
pub fn shown(text: &[u8]) -> String {
    let cut = text.get(..SHOWN).unwrap_or(text);
    let more = if text.len() > SHOWN { "…" } else { "" };
    format!("{}{more}", cut.escape_ascii())
}
