//! The words of a call, one a line: read as a slow reader that knows no shortcut reads them, or
//! refused in a text that is short and printable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mailrl_core::{Lane, Override, Request, ReservationId, Wish, arguments};

/// Longest error, in bytes: a name, a range, the caller's text cut to 32 bytes (each at most four
/// characters when escaped), the form of the call.
const LONGEST_ERROR: usize = 300;

fuzz_target!(|input: &[u8]| {
    let words: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let first = words.first().copied().unwrap_or_default();
    agrees(arguments::reserve(words.iter().copied()), naive::reserve(&words));
    agrees(arguments::limits(words.iter().copied()), naive::limits(&words));
    agrees(arguments::pause_ms(first), naive::number(first, 0, 86_400_000));
    agrees(arguments::reservation(first), naive::reservation(first));
});

fn agrees<T: PartialEq + std::fmt::Debug>(read: Result<T, String>, expected: Option<T>) {
    match (read, expected) {
        (Ok(read), Some(expected)) => assert_eq!(read, expected),
        (Err(error), None) => {
            assert!(error.len() < LONGEST_ERROR, "{error}");
            let printable = |character: char| character == '…' || (' '..='~').contains(&character);
            assert!(error.chars().all(printable), "{error:?}");
        }
        (read, expected) => panic!("{read:?}, but {expected:?}"),
    }
}

/// The same again: all into a list of pairs first, each number through the widest integer.
mod naive {
    use super::{Lane, Override, Request, ReservationId, Wish};

    /// A text of decimal digits.
    fn integer(text: &[u8]) -> Option<u64> {
        if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        match std::str::from_utf8(text).ok()?.trim_start_matches('0') {
            "" => Some(0),
            digits => digits.parse().ok(),
        }
    }

    pub fn number(text: &[u8], least: u64, most: u64) -> Option<u32> {
        let number = integer(text).filter(|number| (least..=most).contains(number))?;
        u32::try_from(number).ok()
    }

    /// The options, each once at most, with the value of those that have one.
    fn options(mut words: &[&[u8]], flags: &[&str]) -> Option<Vec<(String, Option<u32>)>> {
        let mut options: Vec<(String, Option<u32>)> = Vec::new();
        while let [name, rest @ ..] = words {
            let name = name
                .iter()
                .map(|byte| char::from(byte.to_ascii_uppercase()))
                .collect::<String>();
            if options.iter().any(|(known, _)| *known == name) {
                return None;
            }
            words = rest;
            let mut value = |most| {
                let [text, rest @ ..] = words else { return None };
                words = rest;
                number(text, 1, most)
            };
            let value = match name.as_str() {
                "PERMINUTE" | "PERDAY" => Some(value(u64::from(u32::MAX))?),
                "CONCURRENT" => Some(value(1_024)?),
                "LEASE" if flags.contains(&"LEASE") => Some(value(3_600_000)?),
                flag if flags.contains(&flag) => None,
                _ => return None,
            };
            options.push((name, value));
        }
        Some(options)
    }

    fn value(options: &[(String, Option<u32>)], name: &str) -> Option<u32> {
        options.iter().find(|(known, _)| known == name)?.1
    }

    fn wish(options: &[(String, Option<u32>)]) -> Wish {
        Wish {
            per_minute: value(options, "PERMINUTE"),
            per_day: value(options, "PERDAY"),
            concurrent: value(options, "CONCURRENT"),
        }
    }

    pub fn reserve(words: &[&[u8]]) -> Option<Request> {
        let recipients = number(words.first()?, 1, u64::from(u32::MAX))?;
        let options = options(&words[1..], &["LEASE", "BULK"])?;
        let is_bulk = options.iter().any(|(name, _)| name == "BULK");
        Some(Request {
            recipients,
            wish: wish(&options),
            lane: if is_bulk { Lane::Bulk } else { Lane::Normal },
            lease_ms: value(&options, "LEASE").unwrap_or(120_000),
        })
    }

    pub fn limits(words: &[&[u8]]) -> Option<Override> {
        let options = options(words, &["RESET"])?;
        let wish = wish(&options);
        match options.iter().any(|(name, _)| name == "RESET") {
            true if options.len() > 1 => None,
            true => Some(Override::Reset),
            false => Some(Override::Set(wish)),
        }
    }

    pub fn reservation(text: &[u8]) -> Option<ReservationId> {
        let dash = text.iter().position(|byte| *byte == b'-')?;
        Some(ReservationId {
            ms: integer(&text[..dash])?,
            seq: u32::try_from(integer(&text[dash + 1..])?).ok()?,
        })
    }
}
