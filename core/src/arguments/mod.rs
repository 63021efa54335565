//! What a caller asks for, read from the words of its call. Every error names the argument and says
//! what it may be, in a text that is short and printable whatever the caller sent.
//!
//! Options are case-insensitive, come in any order and at most once each.

mod number;
mod options;

use std::ops::RangeInclusive;

use number::{LIMIT, number, shown};
use options::{Options, once};

use crate::id::ReservationId;
use crate::limits::{Lane, Wish};
use crate::overrides::Override;
use crate::pause::MOST_PAUSE_MS;
use crate::verdict::Request;

/// The form of a call that reserves.
pub const RESERVE_FORM: &str =
    "MAILRL.RESERVE key recipients [PERMINUTE n] [PERDAY n] [CONCURRENT n] [LEASE ms] [BULK]";
/// The form of a call that overrides limits.
pub const LIMITS_FORM: &str = "MAILRL.LIMITS key [PERMINUTE n] [PERDAY n] [CONCURRENT n] | RESET";

const LEASE_MS: RangeInclusive<u32> = 1..=3_600_000;
const DEFAULT_LEASE_MS: u32 = 120_000;
const PAUSE_MS: RangeInclusive<u32> = 0..=MOST_PAUSE_MS;

/// Reads what [`reserve`](crate::reserve()) is asked for: the recipients, then the options.
///
/// # Errors
/// What is wrong with it.
pub fn reserve<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Request, String> {
    let recipients = number("recipients", words.next().unwrap_or_default(), &LIMIT)?;
    let mut wish = Wish::default();
    let mut lease_ms = None;
    let mut bulk = None;
    let mut options = Options::new(words, RESERVE_FORM);
    while let Some(option) = options.next_name() {
        if options.limit(option, &mut wish)? {
            continue;
        }
        match option {
            _ if option.eq_ignore_ascii_case(b"LEASE") => options.value("LEASE", &LEASE_MS, &mut lease_ms)?,
            _ if option.eq_ignore_ascii_case(b"BULK") => once("BULK", &mut bulk, Lane::Bulk)?,
            _ => return Err(options.unknown(option)),
        }
    }
    Ok(Request {
        recipients,
        wish,
        lane: bulk.unwrap_or_default(),
        lease_ms: lease_ms.unwrap_or(DEFAULT_LEASE_MS),
    })
}

/// Reads what [`override_limits`](crate::override_limits) is asked for; nothing at all changes
/// nothing.
///
/// # Errors
/// What is wrong with it.
pub fn limits<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Override, String> {
    let mut wish = Wish::default();
    let mut reset = None;
    let mut options = Options::new(words, LIMITS_FORM);
    while let Some(option) = options.next_name() {
        if options.limit(option, &mut wish)? {
            continue;
        }
        if !option.eq_ignore_ascii_case(b"RESET") {
            return Err(options.unknown(option));
        }
        once("RESET", &mut reset, ())?;
    }
    match (reset, wish == Wish::default()) {
        (None, _) => Ok(Override::Set(wish)),
        (Some(()), true) => Ok(Override::Reset),
        (Some(()), false) => Err(format!("RESET stands alone; the form is {LIMITS_FORM}")),
    }
}

/// Reads how long a pause is, in ms.
///
/// # Errors
/// What is wrong with it.
pub fn pause_ms(text: &[u8]) -> Result<u32, String> {
    number("the pause in ms", text, &PAUSE_MS)
}

/// Reads the id of a reservation.
///
/// # Errors
/// What is wrong with it.
pub fn reservation(text: &[u8]) -> Result<ReservationId, String> {
    ReservationId::parse(text).ok_or_else(|| {
        format!(
            "reservation must be an id as MAILRL.RESERVE replied it, as in 1700000000000-1, not '{}'",
            shown(text)
        )
    })
}
