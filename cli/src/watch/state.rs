//! What is shown and what keys do to it. Pure: it is told what was seen and which keys came.

use std::cmp::Ordering;
use std::collections::HashMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::history::History;
use super::line::{Line, Purpose};
use super::wish::{Change, Wish};
use crate::overview::{MailboxView, Overview};
use crate::status::{Status, Window};

/// How many rows the keys for pages move.
const PAGE: usize = 10;

/// All that is shown.
#[derive(Default)]
pub struct State {
    overview: Overview,
    /// Where in the overview the rows are, in their order.
    rows: Vec<usize>,
    histories: HashMap<Vec<u8>, History>,
    /// The key of the mailbox that was chosen; the rows move around it.
    chosen: Option<Vec<u8>>,
    pub search: String,
    pub mode: Mode,
    pub note: Option<Note>,
    /// Why the last look saw nothing.
    pub trouble: Option<String>,
    /// True once a look saw something.
    pub has_seen: bool,
}

/// What keys are meant for.
#[derive(Debug, Default, PartialEq)]
pub enum Mode {
    #[default]
    List,
    Help,
    /// A line is being typed.
    Typing(Line),
    /// A change waits for a yes.
    Asking(Wish),
}

/// What became of the last change.
#[derive(Debug, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub is_error: bool,
}

/// What a key leads to beyond another picture.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Nothing,
    Quit,
    Do(Wish),
}

impl State {
    /// Takes what a look saw, or why it saw nothing.
    pub fn saw(&mut self, seen: Result<Overview, String>) {
        match seen {
            Ok(overview) => {
                self.overview = overview;
                self.trouble = None;
                self.has_seen = true;
                let mut before = std::mem::take(&mut self.histories);
                for mailbox in &self.overview.mailboxes {
                    let mut history = before.remove(&mailbox.key).unwrap_or_default();
                    history.add(mailbox.status().map(|status| status.minute.used));
                    self.histories.insert(mailbox.key.clone(), history);
                }
                self.arrange();
            }
            Err(trouble) => {
                if self.trouble.replace(trouble).is_none() {
                    // What was done before must not stand in front of it.
                    self.note = None;
                }
                for history in self.histories.values_mut() {
                    history.add(None);
                }
            }
        }
    }

    /// Takes what became of a change.
    pub fn done(&mut self, done: Result<String, String>) {
        let is_error = done.is_err();
        let text = done.unwrap_or_else(|error| error);
        self.note = Some(Note { text, is_error });
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if key.kind == KeyEventKind::Release {
            return Outcome::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Outcome::Quit,
                _ => Outcome::Nothing,
            };
        }
        match std::mem::take(&mut self.mode) {
            Mode::List => return self.list_key(key.code),
            Mode::Help => {}
            Mode::Typing(line) => self.typing_key(line, key.code),
            Mode::Asking(wish) => match key.code {
                KeyCode::Char('y' | 'Y') => return Outcome::Do(wish),
                KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => self.done(Ok("nothing was changed".into())),
                // An Enter too many must not change anything.
                _ => self.mode = Mode::Asking(wish),
            },
        }
        Outcome::Nothing
    }

    fn list_key(&mut self, code: KeyCode) -> Outcome {
        self.note = None;
        match code {
            KeyCode::Char('q') => return Outcome::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.choose(|row| row.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(|row| row + 1),
            KeyCode::PageUp => self.choose(|row| row.saturating_sub(PAGE)),
            KeyCode::PageDown => self.choose(|row| row + PAGE),
            KeyCode::Home => self.choose(|_| 0),
            KeyCode::End => self.choose(|_| usize::MAX),
            KeyCode::Esc => self.search_for(String::new()),
            KeyCode::Char('/') => {
                self.mode = Mode::Typing(Line::new(Purpose::Search, self.search.clone()));
            }
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('p') => self.type_for(Purpose::Pause, "10m"),
            KeyCode::Char('l') => self.type_for(Purpose::Limits, ""),
            KeyCode::Char('r') => {
                if let Some(mailbox) = self.chosen() {
                    self.mode = Mode::Asking(Wish::new(mailbox, Change::Resume));
                }
            }
            _ => {}
        }
        Outcome::Nothing
    }

    fn type_for(&mut self, purpose: fn(Wished) -> Purpose, text: &str) {
        if let Some(mailbox) = self.chosen() {
            let wished = (mailbox.key.clone(), mailbox.mailbox.clone());
            self.mode = Mode::Typing(Line::new(purpose(wished), text.into()));
        }
    }

    fn typing_key(&mut self, mut line: Line, code: KeyCode) {
        match code {
            KeyCode::Esc => {
                if line.purpose == Purpose::Search {
                    self.search_for(String::new());
                }
                return;
            }
            KeyCode::Enter => match line.enter() {
                Ok(Some(wish)) => {
                    self.mode = Mode::Asking(wish);
                    return;
                }
                Ok(None) => return,
                Err(wrong) => line.wrong = Some(wrong),
            },
            KeyCode::Backspace => line.backspace(),
            KeyCode::Char(character) => line.push(character),
            _ => {}
        }
        if line.purpose == Purpose::Search {
            self.search_for(line.text.clone());
        }
        self.mode = Mode::Typing(line);
    }

    fn search_for(&mut self, search: String) {
        self.search = search;
        self.arrange();
    }

    /// The rows: those that are searched for, the fullest first.
    fn arrange(&mut self) {
        let search = self.search.to_lowercase();
        let mailboxes = &self.overview.mailboxes;
        self.rows = (0..mailboxes.len())
            .filter(|&index| mailboxes[index].mailbox.to_lowercase().contains(&search))
            .collect();
        self.rows.sort_by(|&one, &other| {
            let (one, other) = (&mailboxes[one], &mailboxes[other]);
            fullest_first(one, other).then_with(|| one.key.cmp(&other.key))
        });
    }

    fn choose(&mut self, to: impl FnOnce(usize) -> usize) {
        let Some(last) = self.rows.len().checked_sub(1) else {
            return;
        };
        let row = to(self.chosen_row()).min(last);
        self.chosen = Some(self.mailbox(row).key.clone());
    }

    /// The mailbox of a row.
    pub fn mailbox(&self, row: usize) -> &MailboxView {
        &self.overview.mailboxes[self.rows[row]]
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many mailboxes there are, searched for or not.
    pub fn mailboxes(&self) -> usize {
        self.overview.mailboxes.len()
    }

    pub fn missing(&self) -> &[String] {
        &self.overview.missing
    }

    /// The row that is chosen: that of the mailbox, else the first.
    pub fn chosen_row(&self) -> usize {
        let chosen = self.chosen.as_ref();
        let is_chosen = |&index: &usize| Some(&self.overview.mailboxes[index].key) == chosen;
        self.rows.iter().position(is_chosen).unwrap_or(0)
    }

    /// The mailbox that is chosen; none if no row is shown.
    pub fn chosen(&self) -> Option<&MailboxView> {
        (self.rows() > 0).then(|| self.mailbox(self.chosen_row()))
    }

    pub fn history(&self, key: &[u8]) -> Option<&History> {
        self.histories.get(key)
    }
}

/// A mailbox that something is wished for: its key and its name.
pub type Wished = (Vec<u8>, String);

fn fullest_first(one: &MailboxView, other: &MailboxView) -> Ordering {
    let full = |mailbox: &MailboxView| {
        // What cannot be read comes last.
        mailbox.status().map_or(-1.0, fullness)
    };
    full(other).total_cmp(&full(one))
}

fn fullness(status: &Status) -> f64 {
    share(&status.minute).max(share(&status.day))
}

/// How much of a window is used; more than 1 where its limit was lowered meanwhile.
#[expect(clippy::cast_precision_loss, reason = "a picture needs no more")]
pub fn share(window: &Window) -> f64 {
    window.used as f64 / window.limit.max(1) as f64
}
