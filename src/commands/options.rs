//! The options that follow a command's fixed arguments, in any order and case.

use std::ops::RangeInclusive;

use mailrl_core::Wish;

use super::arguments::{LIMIT, number, shown};
use crate::redis::command::ArgumentKind;
use crate::redis::{Args, Argument};

const PLACES: RangeInclusive<u32> = 1..=1_024;

/// Messages a minute, as `COMMAND DOCS` shows it.
pub const PERMINUTE: Argument = Argument {
    name: c"messages",
    token: Some(c"PERMINUTE"),
    kind: ArgumentKind::Integer,
};
/// Recipients a day.
pub const PERDAY: Argument = Argument {
    name: c"recipients",
    token: Some(c"PERDAY"),
    kind: ArgumentKind::Integer,
};
/// Open reservations at once.
pub const CONCURRENT: Argument = Argument {
    name: c"reservations",
    token: Some(c"CONCURRENT"),
    kind: ArgumentKind::Integer,
};

/// The options of one call, read one after another.
pub struct Options<'a> {
    args: Args<'a>,
    next: usize,
    usage: &'static str,
}

impl<'a> Options<'a> {
    /// Begins at this argument; `usage` is the command's right form.
    pub const fn new(args: Args<'a>, first: usize, usage: &'static str) -> Self {
        Self {
            args,
            next: first,
            usage,
        }
    }

    /// The name of the next option.
    pub fn next_name(&mut self) -> Option<&'a [u8]> {
        let name = self.args.get(self.next)?;
        self.next = self.next.saturating_add(1);
        Some(name)
    }

    /// Reads the value of a limit, if `option` names one.
    pub fn limit(&mut self, option: &[u8], wish: &mut Wish) -> Result<bool, String> {
        let (name, range, place) = match option {
            _ if option.eq_ignore_ascii_case(b"PERMINUTE") => ("PERMINUTE", LIMIT, &mut wish.per_minute),
            _ if option.eq_ignore_ascii_case(b"PERDAY") => ("PERDAY", LIMIT, &mut wish.per_day),
            _ if option.eq_ignore_ascii_case(b"CONCURRENT") => ("CONCURRENT", PLACES, &mut wish.concurrent),
            _ => return Ok(false),
        };
        self.value(name, &range, place)?;
        Ok(true)
    }

    /// Reads the number that belongs to an option.
    pub fn value(
        &mut self,
        name: &str,
        range: &RangeInclusive<u32>,
        place: &mut Option<u32>,
    ) -> Result<(), String> {
        let text = self
            .next_name()
            .ok_or_else(|| format!("ERR {name} lacks its value; the form is {}", self.usage))?;
        once(name, place, number(name, text, range)?)
    }

    /// The error for an option that the command does not know.
    pub fn unknown(&self, option: &[u8]) -> String {
        format!(
            "ERR unknown option '{}'; the form is {}",
            shown(option),
            self.usage
        )
    }
}

/// Notes an option that may be given once.
pub fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), String> {
    if place.replace(value).is_some() {
        return Err(format!("ERR {name} is given twice; give it once"));
    }
    Ok(())
}
