//! Open reservations: remembered, found by their id, closed once.
//!
//! A new one takes a place beside the hot part, so that callers who commit never need another.
//! Those that stay open longer move on, four at a time, into a ring of places in the order of their
//! numbers. There closed ones keep their place until those before them are gone or room is made. So
//! making and finding one costs the same however many are open.

use crate::changes::Changes;
use crate::id::ReservationId;
use crate::layout::{Entry, Log, Offsets, RECENT};

/// How many open reservations a mailbox remembers; past that the oldest counts as committed.
pub const MOST_OPEN: usize = 1_024;

/// The longest lease, in ms: 1 h.
pub const MOST_LEASE_MS: u64 = 3_600_000;

impl Entry {
    pub fn is_open(&self, now_ms: u64) -> bool {
        // A lease lasts an hour at most; more is left only after a step of the clock by weeks.
        let left = self.lease_end().saturating_sub(now_ms);
        !self.is_closed() && (1..=MOST_LEASE_MS).contains(&left)
    }

    pub fn is_closed(&self) -> bool {
        self.recipients.get() == 0
    }

    pub fn lease_end(&self) -> u64 {
        self.made_at
            .get()
            .saturating_add_signed(self.lease_ms.get().into())
    }
}

impl Log<'_> {
    /// Whether a new one stands beside the hot part, as all others do: there is nothing to look after.
    pub fn is_short(&self, now_ms: u64) -> bool {
        self.older.is_empty() && self.free_recent(now_ms).is_some()
    }

    /// Whether a new one needs more places than there are.
    pub fn is_full(&self, now_ms: u64) -> bool {
        let free = self.older.len().saturating_sub(self.head.taken.get().into());
        free < RECENT && self.free_recent(now_ms).is_none()
    }

    /// Whether as many seem to be open as are remembered, while the lease of some is over.
    pub fn holds_too_many(&mut self, now_ms: u64) -> bool {
        if !self.is_crowded() || !self.may_have_ended(now_ms) {
            return false;
        }
        let mut earliest_end = u64::MAX;
        for entry in self.entries().filter(|entry| !entry.is_closed()) {
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

    /// How many are not closed, though the lease of some may be over: at least as many as are open.
    pub fn not_closed(&self) -> usize {
        let recent = self.head.recent.count_ones() as usize;
        usize::from(self.head.open.get()).saturating_add(recent)
    }

    /// Forgets the oldest ones as far as they are closed. Reads none of them where none can be.
    pub fn drop_closed(&mut self, now_ms: u64) {
        if self.all_older_are_open() && !self.may_have_ended(now_ms) {
            return;
        }
        while let Some(entry) = self.nth_older(0)
            && !entry.is_open(now_ms)
        {
            self.drop_oldest();
        }
    }

    /// Adds one; its number is the next one. There must be room. The oldest counts as committed if
    /// more are open than are remembered.
    pub fn push(&mut self, entry: Entry, now_ms: u64, offsets: Offsets, changes: &mut Changes) {
        if self.is_crowded() {
            self.drop_oldest();
        }
        let end = in_seconds(entry.lease_end());
        let earliest = if self.not_closed() == 0 {
            end
        } else {
            self.head.earliest_end_s.get().min(end)
        };
        let place = self.free_recent(now_ms).unwrap_or_else(|| {
            self.move_on(offsets, changes);
            0
        });
        if let Some(free) = self.get_mut(place) {
            *free = entry;
            self.head.recent |= bit(place);
            self.head.next_seq.set(entry.seq.get().wrapping_add(1));
            self.head.earliest_end_s.set(earliest);
        }
        changes.add(offsets.place(place));
    }

    /// Closes the one at a place, and gives it as it was.
    pub fn close(&mut self, place: usize) -> Option<Entry> {
        let entry = self.get_mut(place)?;
        let closed = *entry;
        if place < RECENT {
            self.head.recent &= !bit(place);
        } else {
            entry.recipients.set(0);
            self.head.open.set(self.head.open.get().saturating_sub(1));
        }
        Some(closed)
    }

    /// The place of an open reservation.
    pub fn find(&self, id: ReservationId, now_ms: u64) -> Option<usize> {
        let is_it = |entry: &Entry| {
            entry.seq.get() == id.seq && entry.made_at.get() == id.ms && entry.is_open(now_ms)
        };
        if let Some((place, _)) = self.recent().find(|(_, entry)| is_it(entry)) {
            return Some(place);
        }
        // Numbers go up in steps of one or, where closed ones were taken out, more; counted from
        // the oldest one they stay in order when they wrap.
        let base = self.nth_older(0)?.seq.get();
        let wanted = id.seq.wrapping_sub(base);
        let (mut low, mut high) = (0_usize, usize::from(self.head.taken.get()));
        while low < high {
            let middle = low.midpoint(high);
            if self.nth_older(middle)?.seq.get().wrapping_sub(base) < wanted {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        self.nth_older(low)
            .filter(|entry| is_it(entry))
            .map(|_| self.place_of_older(low))
    }

    /// All that are remembered.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.older().chain(self.recent().map(|(_, entry)| entry))
    }

    /// Those that are not recent, oldest first.
    pub fn older(&self) -> impl Iterator<Item = &Entry> {
        (0..usize::from(self.head.taken.get())).filter_map(|nth| self.nth_older(nth))
    }

    /// All places, taken or not.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.before
            .iter_mut()
            .chain(self.after.iter_mut())
            .chain(self.older.iter_mut())
    }

    /// The recent ones that are not closed, with their places: the nearest to the hot part first.
    fn recent(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let places = self.recent_places().into_iter().enumerate();
        places.filter(|&(place, _)| self.head.recent & bit(place) != 0)
    }

    /// The nearest recent place for a new one.
    fn free_recent(&self, now_ms: u64) -> Option<usize> {
        let mut places = self.recent_places().into_iter().enumerate();
        places.position(|(place, entry)| self.head.recent & bit(place) == 0 || !entry.is_open(now_ms))
    }

    /// The recent places, taken or not, the nearest to the hot part first.
    fn recent_places(&self) -> [&Entry; RECENT] {
        let ([second, first], [third, fourth]) = (&*self.before, &*self.after);
        [first, second, third, fourth]
    }

    /// The bits of the recent places that hold an open one.
    pub fn open_recent(&self, now_ms: u64) -> u8 {
        let open = self.recent().filter(|(_, entry)| entry.is_open(now_ms));
        open.fold(0, |bits, (place, _)| bits | bit(place))
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut Entry> {
        let ([second, first], [third, fourth]) = (&mut *self.before, &mut *self.after);
        match place {
            0 => Some(first),
            1 => Some(second),
            2 => Some(third),
            3 => Some(fourth),
            _ => self.older.get_mut(place.checked_sub(RECENT)?),
        }
    }

    /// Moves the recent ones, all of them open, to the older ones; there is room.
    fn move_on(&mut self, offsets: Offsets, changes: &mut Changes) {
        let mut moved = self.recent_places().map(|entry| *entry);
        let next = self.head.next_seq.get();
        moved.sort_unstable_by_key(|entry| std::cmp::Reverse(next.wrapping_sub(entry.seq.get())));
        for entry in moved {
            let taken = self.head.taken.get();
            let place = self.place_of_older(taken.into());
            if let Some(free) = self.get_mut(place) {
                *free = entry;
                self.head.taken.set(taken.saturating_add(1));
                self.head.open.set(self.head.open.get().saturating_add(1));
                changes.add(offsets.place(place));
            }
        }
        self.head.recent = 0;
    }

    fn may_have_ended(&self, now_ms: u64) -> bool {
        u64::from(self.head.earliest_end_s.get()).saturating_mul(1_000) <= now_ms
    }

    fn all_older_are_open(&self) -> bool {
        self.head.open == self.head.taken
    }

    /// Whether as many are not closed as are remembered, though the lease of some may be over.
    pub fn is_crowded(&self) -> bool {
        self.not_closed() >= MOST_OPEN
    }

    /// Forgets the oldest one, open or not.
    fn drop_oldest(&mut self) {
        let was_open =
            self.all_older_are_open() || self.nth_older(0).is_some_and(|oldest| !oldest.is_closed());
        let first = self.place_of_older(1).saturating_sub(RECENT);
        self.head.first.set(to_u16(first));
        self.head.taken.set(self.head.taken.get().saturating_sub(1));
        self.head
            .open
            .set(self.head.open.get().saturating_sub(u16::from(was_open)));
    }

    fn nth_older(&self, nth: usize) -> Option<&Entry> {
        let taken = nth < usize::from(self.head.taken.get());
        let place = self.place_of_older(nth).checked_sub(RECENT)?;
        self.older.get(place).filter(|_| taken)
    }

    /// The place of the nth older one; their number is a power of two.
    fn place_of_older(&self, nth: usize) -> usize {
        let place = usize::from(self.head.first.get()).wrapping_add(nth) & self.older.len().wrapping_sub(1);
        place.saturating_add(RECENT)
    }
}

/// The bit of a recent place in [`recent`](crate::layout::LogHead::recent).
const fn bit(place: usize) -> u8 {
    if place < RECENT { 1 << place } else { 0 }
}

/// A time in whole seconds, rounded down.
pub(crate) fn in_seconds(ms: u64) -> u32 {
    u32::try_from(ms.checked_div(1_000).unwrap_or_default()).unwrap_or(u32::MAX)
}

/// Places are at most 2,048.
pub(crate) fn to_u16(places: usize) -> u16 {
    u16::try_from(places).unwrap_or(u16::MAX)
}
