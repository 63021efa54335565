//! Open reservations: remembered, found by their id, closed once.
//!
//! They stand in a ring of places in the order of their numbers. Closed ones keep their place until
//! those before them are gone or room is made, so that making and finding one costs the same
//! however many are open.

use std::ops::Range;

use crate::id::ReservationId;
use crate::layout::{ENTRY_LEN, Entry, Log, Offsets};

/// How many open reservations a mailbox remembers; past that the oldest counts as committed.
pub const MOST_OPEN: usize = 1_024;

/// The longest lease, in ms: 1 h.
pub const MOST_LEASE_MS: u64 = 3_600_000;

impl Entry {
    pub fn is_open(&self, now_ms: u64) -> bool {
        // A lease lasts an hour at most; more is left only after a step of the clock by weeks.
        let left = self.lease_end().saturating_sub(now_ms);
        self.recipients.get() != 0 && (1..=MOST_LEASE_MS).contains(&left)
    }

    pub fn lease_end(&self) -> u64 {
        self.made_at
            .get()
            .saturating_add_signed(self.lease_ms.get().into())
    }
}

impl Log<'_> {
    /// Whether there is no place for one more.
    pub fn is_full(&self) -> bool {
        usize::from(self.head.taken.get()) == self.places.len()
    }

    /// Whether as many seem to be open as are remembered, while the lease of some is over.
    pub fn holds_too_many(&mut self, now_ms: u64) -> bool {
        if !self.is_crowded() || !self.may_have_ended(now_ms) {
            return false;
        }
        let mut earliest_end = u64::MAX;
        for entry in self.entries().filter(|entry| entry.recipients.get() != 0) {
            if !entry.is_open(now_ms) {
                return true;
            }
            earliest_end = earliest_end.min(entry.lease_end());
        }
        // The one that ended first has left already. Not asked again before the next one ends.
        self.head.earliest_end_s.set(in_seconds(earliest_end));
        false
    }

    /// How many are open.
    pub fn open(&self, now_ms: u64) -> usize {
        self.entries().filter(|entry| entry.is_open(now_ms)).count()
    }

    /// Forgets the oldest ones as far as they are closed. Reads none of them where none can be.
    pub fn drop_closed(&mut self, now_ms: u64) {
        if self.all_open() && !self.may_have_ended(now_ms) {
            return;
        }
        while let Some(entry) = self.entry(0)
            && !entry.is_open(now_ms)
        {
            self.drop_oldest();
        }
        if self.head.taken.get() == 0 {
            // Near the head again, so that both are one range to replicate.
            self.head.first.set(0);
        }
    }

    /// Adds one; its number is the next one. The log must not be full. The oldest counts as
    /// committed if more are open than are remembered. Gives its place.
    pub fn push(&mut self, entry: Entry) -> usize {
        if self.is_crowded() {
            self.drop_oldest();
        }
        let taken = self.head.taken.get();
        let place = self.place(usize::from(taken));
        let end = in_seconds(entry.lease_end());
        let earliest = if self.head.open.get() == 0 {
            end
        } else {
            self.head.earliest_end_s.get().min(end)
        };
        if let Some(free) = self.places.get_mut(place) {
            *free = entry;
            self.head.taken.set(taken.saturating_add(1));
            self.head.open.set(self.head.open.get().saturating_add(1));
            self.head.next_seq.set(entry.seq.get().wrapping_add(1));
            self.head.earliest_end_s.set(earliest);
        }
        place
    }

    /// Closes the one at a place, and gives it as it was.
    pub fn close(&mut self, place: usize) -> Option<Entry> {
        let entry = self.places.get_mut(place)?;
        let closed = *entry;
        entry.recipients.set(0);
        self.head.open.set(self.head.open.get().saturating_sub(1));
        Some(closed)
    }

    fn may_have_ended(&self, now_ms: u64) -> bool {
        u64::from(self.head.earliest_end_s.get()).saturating_mul(1_000) <= now_ms
    }

    fn all_open(&self) -> bool {
        self.head.open == self.head.taken
    }

    fn is_crowded(&self) -> bool {
        usize::from(self.head.open.get()) >= MOST_OPEN
    }

    /// Forgets the oldest one, open or not.
    fn drop_oldest(&mut self) {
        let was_open = self.all_open() || self.entry(0).is_some_and(|oldest| oldest.recipients.get() != 0);
        let first = self.place(1);
        self.head.first.set(to_u16(first));
        self.head.taken.set(self.head.taken.get().saturating_sub(1));
        self.head
            .open
            .set(self.head.open.get().saturating_sub(u16::from(was_open)));
    }

    /// The place of an open reservation.
    pub fn find(&self, id: ReservationId, now_ms: u64) -> Option<usize> {
        // Numbers go up in steps of one or, where closed ones were taken out, more; counted from
        // the oldest one they stay in order when they wrap.
        let base = self.entry(0)?.seq.get();
        let wanted = id.seq.wrapping_sub(base);
        let (mut low, mut high) = (0_usize, usize::from(self.head.taken.get()));
        while low < high {
            let middle = low.midpoint(high);
            if self.entry(middle)?.seq.get().wrapping_sub(base) < wanted {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let entry = self.entry(low)?;
        let found = entry.seq.get() == id.seq && entry.made_at.get() == id.ms && entry.is_open(now_ms);
        found.then(|| self.place(low))
    }

    /// All that are remembered, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        (0..usize::from(self.head.taken.get())).filter_map(|nth| self.entry(nth))
    }

    fn entry(&self, nth: usize) -> Option<&Entry> {
        let taken = nth < usize::from(self.head.taken.get());
        self.places.get(self.place(nth)).filter(|_| taken)
    }

    /// The place of the nth one; the number of places is a power of two.
    fn place(&self, nth: usize) -> usize {
        usize::from(self.head.first.get()).wrapping_add(nth) & self.places.len().wrapping_sub(1)
    }
}

/// Where an entry stands in the value.
pub(crate) fn entry_range(offsets: Offsets, place: usize) -> Range<usize> {
    let start = offsets.len(place);
    start..start.saturating_add(ENTRY_LEN)
}

/// A time in whole seconds, rounded down.
pub(crate) fn in_seconds(ms: u64) -> u32 {
    u32::try_from(ms.checked_div(1_000).unwrap_or_default()).unwrap_or(u32::MAX)
}

/// Places are at most 2,048.
pub(crate) fn to_u16(places: usize) -> u16 {
    u16::try_from(places).unwrap_or(u16::MAX)
}
