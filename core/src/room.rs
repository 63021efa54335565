//! Room for one more reservation: the log grows, is tidied up, or becomes smaller.
//!
//! Each costs as much as there are places, and leaves as many free, so it is paid for by the
//! reservations that fill them.

use zerocopy::little_endian::{U16, U32};

use crate::changes::Changes;
use crate::error::BadState;
use crate::layout::{Entry, FEWEST_PLACES, Log, LogHead, MOST_PLACES, Offsets, Parts};
use crate::reservation::{in_seconds, to_u16};
use crate::value::Value;

/// A log is made smaller once it has this many times the places it needs: late, so that a mailbox
/// whose open reservations come in bursts does not rewrite its value with each burst.
const SHRINKS_AT: usize = 64;

impl Log<'_> {
    /// Whether there is no place for one more, far more places than are needed, or more that seem
    /// open than are remembered.
    pub fn needs_room(&mut self, now_ms: u64) -> bool {
        self.is_full(now_ms) || self.is_too_long() || self.holds_too_many(now_ms)
    }

    fn is_too_long(&self) -> bool {
        let needed = places_for(self.head.taken.get().into());
        needed.saturating_mul(SHRINKS_AT) <= self.older.len()
    }
}

/// Sees that the log has a place for one more, and not far too many.
pub(crate) fn make_room(value: &mut impl Value, now_ms: u64, changes: &mut Changes) -> Result<(), BadState> {
    let log = Parts::of(value.bytes())?.log;
    let places = log.older.len();
    let open = log.older().filter(|entry| entry.is_open(now_ms)).count();
    let is_full_of_open = log.is_full(now_ms) && open.saturating_mul(2) >= places && places < MOST_PLACES;
    // Those whose lease is over would have one that is open forgotten in their stead.
    if !is_full_of_open || log.is_crowded() {
        tidy_up(value, now_ms, changes)?;
    }
    if is_full_of_open && Parts::of(value.bytes())?.log.is_full(now_ms) {
        grow(value, changes)?;
    }
    Ok(())
}

/// How many places this many open reservations need, as many being free.
fn places_for(open: usize) -> usize {
    open.saturating_mul(2)
        .next_power_of_two()
        .clamp(FEWEST_PLACES, MOST_PLACES)
}

/// Doubles the places of a full log. Those from the oldest to the old end stay where they are; those
/// that went on at the beginning go on behind the old end.
fn grow(value: &mut impl Value, changes: &mut Changes) -> Result<(), BadState> {
    let parts = Parts::of(value.bytes())?;
    let offsets = Offsets::of(parts.kind);
    let places = parts.log.older.len();
    let len = offsets.len(places.saturating_mul(2).max(FEWEST_PLACES));
    value.resize(len);
    let log = Parts::of(value.bytes())?.log;
    let end = usize::from(log.head.first.get()).saturating_add(log.head.taken.get().into());
    let wrapped = end.saturating_sub(places);
    let (old, new) = log.older.split_at_mut(places);
    for (new, old) in new.iter_mut().zip(old.iter().take(wrapped)) {
        *new = *old;
    }
    changes.add(offsets.len(places)..offsets.len(places.saturating_add(wrapped)));
    // Gives the copies the same length.
    changes.add(len.saturating_sub(1)..len);
    Ok(())
}

/// Takes out what is closed, and places that are far too many.
fn tidy_up(value: &mut impl Value, now_ms: u64, changes: &mut Changes) -> Result<(), BadState> {
    let parts = Parts::of(value.bytes())?;
    let offsets = Offsets::of(parts.kind);
    let open: Vec<Entry> = parts
        .log
        .older()
        .filter(|entry| entry.is_open(now_ms))
        .copied()
        .collect();
    let earliest_end = parts
        .log
        .entries()
        .filter(|entry| entry.is_open(now_ms))
        .map(Entry::lease_end)
        .min();
    let head = LogHead {
        first: U16::ZERO,
        taken: U16::new(to_u16(open.len())),
        open: U16::new(to_u16(open.len())),
        earliest_end_s: U32::new(in_seconds(earliest_end.unwrap_or_default())),
        recent: parts.log.open_recent(now_ms),
        ..*parts.log.head
    };
    let is_too_long = parts.log.is_too_long();
    // The new head points beyond no place, whatever their number is while it changes.
    *parts.log.head = head;
    if is_too_long {
        value.resize(offsets.len(places_for(open.len())));
        *changes = Changes::Whole;
    }
    let log = Parts::of(value.bytes())?.log;
    changes.add(offsets.len(0)..offsets.len(open.len()));
    for (place, entry) in log.older.iter_mut().zip(open) {
        *place = entry;
    }
    Ok(())
}
