//! The options that follow a call's fixed arguments, in any order and case.

use std::ops::RangeInclusive;

use super::number::{LIMIT, number, shown};
use crate::limits::Wish;

const PLACES: RangeInclusive<u32> = 1..=1_024;

/// The options of one call, read one after another.
pub struct Options<I> {
    words: I,
    form: &'static str,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Options<I> {
    /// `form` is the right form of the call.
    pub const fn new(words: I, form: &'static str) -> Self {
        Self { words, form }
    }

    /// The name of the next option.
    pub fn next_name(&mut self) -> Option<&'a [u8]> {
        self.words.next()
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
            .words
            .next()
            .ok_or_else(|| format!("{name} lacks its value; the form is {}", self.form))?;
        once(name, place, number(name, text, range)?)
    }

    /// The error for an option that the call does not know.
    pub fn unknown(&self, option: &[u8]) -> String {
        format!("unknown option '{}'; the form is {}", shown(option), self.form)
    }
}

/// Notes an option that may be given once.
pub fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), String> {
    if place.replace(value).is_some() {
        return Err(format!("{name} is given twice; give it once"));
    }
    Ok(())
}
