//! What happens when: a queue in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mailrl_core::ReservationId;

use crate::change::Change;

/// A mail under way, and who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sending {
    pub id: ReservationId,
    pub mail: usize,
    pub pod: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A mail comes in, or its retry time has come.
    Due { mail: usize },
    /// A mail reaches Graph.
    AtGraph(Sending),
    /// Graph's answer is back at the sender.
    Answered(Sending),
    /// The next urgent mail.
    Urgent,
    /// The configuration changes.
    Change(Change),
    /// The campaign is called off.
    CallOff,
}

#[derive(Debug)]
struct Entry {
    at_ms: u64,
    /// What happens at the same time happens in the order it was planned.
    nth: u64,
    event: Event,
}

#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: BinaryHeap<Reverse<Entry>>,
    planned: u64,
}

impl Events {
    pub fn plan(&mut self, at_ms: u64, event: Event) {
        self.queue.push(Reverse(Entry {
            at_ms,
            nth: self.planned,
            event,
        }));
        self.planned += 1;
    }

    /// The next one and its time, in ms since 1970.
    pub fn next(&mut self) -> Option<(u64, Event)> {
        self.queue.pop().map(|Reverse(entry)| (entry.at_ms, entry.event))
    }
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.at_ms, self.nth)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
