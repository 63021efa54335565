//! Open reservations: remembered, found by their id, closed once.
//!
//! They stand in a ring of places in the order of their numbers. Closed ones keep their place until
//! those before them are gone or room is made, so that making and finding one costs the same
//! however many are open.

use std::fmt;
use std::ops::Range;

use crate::changes::Changes;
use crate::error::BadState;
use crate::layout::{ENTRY_LEN, Entry, FEWEST_PLACES, Log, MOST_PLACES, Offsets, Parts};
use crate::value::Value;

/// How many open reservations a mailbox remembers; past that the oldest counts as committed.
pub const MOST_OPEN: usize = 1_024;

/// The name of a reservation: `<ms>-<seq>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReservationId {
    /// When it was made, in ms since 1970.
    pub ms: u64,
    /// Its number among those of its mailbox.
    pub seq: u32,
}

impl ReservationId {
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
}

/// A log is made smaller once it has this many times the places it needs: late, so that a mailbox
/// whose open reservations come in bursts does not rewrite its value with each burst.
const SHRINKS_AT: usize = 64;

impl fmt::Display for ReservationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}

impl Entry {
    pub fn is_open(&self, now_ms: u64) -> bool {
        self.recipients.get() != 0 && now_ms < self.lease_end.get()
    }
}

impl Log<'_> {
    /// Whether there is no place for one more, or far more room than is needed.
    pub fn needs_another_size(&self) -> bool {
        let taken = usize::from(self.taken.get());
        taken == self.places.len() || is_too_long(self.places.len(), taken)
    }

    /// How many are open.
    pub fn open(&self, now_ms: u64) -> usize {
        self.entries().filter(|entry| entry.is_open(now_ms)).count()
    }

    /// Forgets the oldest ones as far as they are closed.
    pub fn drop_closed(&mut self, now_ms: u64) {
        let closed = self.entries().take_while(|entry| !entry.is_open(now_ms)).count();
        let left = usize::from(self.taken.get()).saturating_sub(closed);
        let first = if left == 0 { 0 } else { self.place(closed) };
        self.first.set(to_u16(first));
        self.taken.set(to_u16(left));
    }

    /// Closes the oldest open one, and gives its place.
    pub fn close_oldest(&mut self, now_ms: u64) -> Option<usize> {
        let nth = self.entries().position(|entry| entry.is_open(now_ms))?;
        let place = self.place(nth);
        self.places.get_mut(place)?.recipients.set(0);
        Some(place)
    }

    /// Adds one; its number is the next one. The log must not be full. Gives its place.
    pub fn push(&mut self, mut entry: Entry) -> usize {
        let seq = self.next_seq.get();
        self.next_seq.set(seq.wrapping_add(1));
        entry.seq.set(seq);
        let taken = self.taken.get();
        let place = self.place(usize::from(taken));
        if let Some(free) = self.places.get_mut(place) {
            *free = entry;
            self.taken.set(taken.saturating_add(1));
        }
        place
    }

    /// The place of an open reservation.
    pub fn find(&self, id: ReservationId, now_ms: u64) -> Option<usize> {
        // Numbers go up in steps of one or, where closed ones were taken out, more; counted from
        // the oldest one they stay in order when they wrap.
        let base = self.entry(0)?.seq.get();
        let wanted = id.seq.wrapping_sub(base);
        let (mut low, mut high) = (0_usize, usize::from(self.taken.get()));
        while low < high {
            let middle = low.midpoint(high);
            if self.entry(middle)?.seq.get().wrapping_sub(base) < wanted {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let entry = self.entry(low).filter(|_| low < usize::from(self.taken.get()))?;
        let found = entry.seq.get() == id.seq && entry.made_at.get() == id.ms && entry.is_open(now_ms);
        found.then(|| self.place(low))
    }

    /// All that are remembered, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        (0..usize::from(self.taken.get())).filter_map(|nth| self.entry(nth))
    }

    fn entry(&self, nth: usize) -> Option<&Entry> {
        self.places.get(self.place(nth))
    }

    /// The place of the nth one; the number of places is a power of two.
    fn place(&self, nth: usize) -> usize {
        usize::from(self.first.get()).wrapping_add(nth) & self.places.len().wrapping_sub(1)
    }
}

/// Where an entry stands in the value.
pub(crate) fn entry_range(offsets: Offsets, place: usize) -> Range<usize> {
    let start = offsets.len(place);
    start..start.saturating_add(ENTRY_LEN)
}

/// How many places this many open reservations need, as many being free.
fn places_for(open: usize) -> usize {
    open.saturating_mul(2)
        .next_power_of_two()
        .clamp(FEWEST_PLACES, MOST_PLACES)
}

fn is_too_long(places: usize, open: usize) -> bool {
    places_for(open).saturating_mul(SHRINKS_AT) <= places
}

/// Gives the log another size: takes out what is closed, and sees that at least half of the places
/// are free. Costs as much as they are many, and leaves as much room, so it is paid for by the
/// reservations that fill it.
pub(crate) fn resize_log(value: &mut impl Value, now_ms: u64, changes: &mut Changes) -> Result<(), BadState> {
    let parts = Parts::of(value.bytes())?;
    let offsets = Offsets::of(parts.kind);
    let places = parts.log.places.len();
    let open: Vec<Entry> = parts
        .log
        .entries()
        .filter(|entry| entry.is_open(now_ms))
        .copied()
        .collect();
    let needed = open
        .len()
        .saturating_mul(2)
        .next_power_of_two()
        .clamp(FEWEST_PLACES, MOST_PLACES);
    // Shrinks late, so that a number that goes up and down does not rewrite the value each time.
    if needed > places || needed.saturating_mul(SHRINKS_AT) <= places {
        value.resize(offsets.len(needed));
        *changes = Changes::Whole;
    }
    let log = Parts::of(value.bytes())?.log;
    log.first.set(0);
    log.taken.set(to_u16(open.len()));
    changes.add(offsets.len(0)..offsets.len(open.len()));
    for (place, entry) in log.places.iter_mut().zip(open) {
        *place = entry;
    }
    Ok(())
}

/// Places are at most 2,048.
fn to_u16(places: usize) -> u16 {
    u16::try_from(places).unwrap_or(u16::MAX)
}
