//! Reading what a caller sent. Every error names the argument and says what it may be.

use std::ops::RangeInclusive;

use mailrl_core::ReservationId;

use crate::redis::{Args, KeyName};

/// Limits, recipients: an integer from 1 to 4,294,967,295.
pub const LIMIT: RangeInclusive<u32> = 1..=u32::MAX;

/// What a text longer than this is cut to in an error.
const SHOWN: usize = 32;

/// Reads a number in a range.
pub fn number(name: &str, text: &[u8], range: &RangeInclusive<u32>) -> Result<u32, String> {
    let number = digits(text);
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        format!(
            "ERR {name} must be an integer from {} to {}, not '{}'",
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

/// Reads the id of a reservation.
pub fn reservation(text: &[u8]) -> Result<ReservationId, String> {
    ReservationId::parse(text).ok_or_else(|| {
        format!(
            "ERR reservation must be an id as MAILRL.RESERVE replied it, as in 1700000000000-1, not '{}'",
            shown(text)
        )
    })
}

/// The key of a call, which comes first; a call with too few or too many arguments is refused.
/// `usage` is the right form.
pub fn key_name<'a>(args: Args<'a>, len: RangeInclusive<usize>, usage: &str) -> Result<KeyName<'a>, String> {
    let name = args.key(1).filter(|_| len.contains(&args.len()));
    name.ok_or_else(|| format!("ERR wrong number of arguments; the form is {usage}"))
}

/// A caller's text in an error: short, and without what a terminal or a log would take amiss.
pub fn shown(text: &[u8]) -> String {
    let cut = text.get(..SHOWN).unwrap_or(text);
    let more = if text.len() > SHOWN { "…" } else { "" };
    format!("{}{more}", cut.escape_ascii())
}
