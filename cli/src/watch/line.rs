//! A line that is typed, and what it says.

use super::state::Wished;
use super::wish::{Change, Wish};
use crate::args::{LimitsChange, pause};

/// More than anything that makes sense; what is pasted by mistake ends there.
const LONGEST: usize = 100;

/// A line that is being typed.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub purpose: Purpose,
    pub text: String,
    /// What is wrong with it, once it was entered.
    pub wrong: Option<String>,
    /// What stands there at first is a proposal: the first character takes its place.
    is_proposal: bool,
}

/// What a line is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Purpose {
    Search,
    Pause(Wished),
    Limits(Wished),
}

impl Line {
    pub fn new(purpose: Purpose, text: String) -> Self {
        Self {
            is_proposal: purpose != Purpose::Search,
            purpose,
            text,
            wrong: None,
        }
    }

    pub fn push(&mut self, character: char) {
        if std::mem::take(&mut self.is_proposal) {
            self.text.clear();
        }
        if !character.is_control() && self.text.len() < LONGEST {
            self.text.push(character);
        }
        self.wrong = None;
    }

    pub fn backspace(&mut self) {
        self.is_proposal = false;
        self.text.pop();
        self.wrong = None;
    }

    /// What it says, as a change that is to be asked for; none if it changes nothing.
    pub fn enter(&self) -> Result<Option<Wish>, String> {
        let (wished, change) = match &self.purpose {
            Purpose::Search => return Ok(None),
            Purpose::Pause(wished) => (wished, Change::Pause(pause(self.text.trim())?)),
            Purpose::Limits(_) if self.text.trim().is_empty() => return Ok(None),
            Purpose::Limits(wished) => (wished, Change::Limits(limits(&self.text)?)),
        };
        let (key, name) = wished.clone();
        Ok(Some(Wish { key, name, change }))
    }
}

/// As `minute 10 day 5000 at-once 2`, or `reset`.
fn limits(text: &str) -> Result<LimitsChange, String> {
    let mut change = LimitsChange::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let (limit, most) = match word {
            "minute" => (&mut change.per_minute, u32::MAX),
            "day" => (&mut change.recipients_per_day, u32::MAX),
            "at-once" => (&mut change.concurrent, 1024),
            "reset" if text.trim() == "reset" => {
                change.reset = true;
                continue;
            }
            _ => return Err("write it as minute 10 day 5000 at-once 2, or as reset".into()),
        };
        let number = words.next().and_then(|number| number.parse().ok());
        *limit = Some(
            number
                .filter(|number| (1..=most).contains(number))
                .ok_or_else(|| format!("{word} takes a number from 1 to {most}"))?,
        );
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_in_words() {
        let expected = LimitsChange {
            per_minute: Some(10),
            concurrent: Some(1024),
            ..LimitsChange::default()
        };
        assert_eq!(limits(" minute 10  at-once 1024 "), Ok(expected));
        assert!(limits("reset").unwrap().reset);
        for text in [
            "10",
            "minute",
            "minute 0",
            "minute -1",
            "day 4294967296",
            "at-once 1025",
            "reset day 5",
        ] {
            assert!(limits(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_proposal_gives_way_to_what_is_typed() {
        let wished = || Purpose::Pause((b"mailrl:a".into(), "a".into()));
        let mut line = Line::new(wished(), "10m".into());
        line.push('5');
        line.push('\u{1b}');
        line.push('s');
        assert_eq!(line.text, "5s");
        let mut line = Line::new(wished(), "10m".into());
        line.backspace();
        line.push('h');
        assert_eq!(line.text, "10h");
        for _ in 0..1_000 {
            line.push('x');
        }
        assert_eq!(line.text.len(), LONGEST);
    }
}
