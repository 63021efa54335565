//! A window is a ring of slots, each a count; what is used is the sum of the slots it still covers.
//!
//! One algorithm serves both kinds: a calendar window is a ring of one slot, a rolling one of many.
//! A rolling window counts its oldest, partly covered slot in full, so that no span of its length
//! ever holds more than the limit, however it is aligned: 61 slots of 1 s cover every 60 s, 289
//! slots of 5 min every 24 h.
//!
//! The newest slot's count stands in the [`WindowHead`], the older ones in the ring, where slot `s`
//! has the place `s mod (slots - 1)`. So most writes touch the head alone.

use std::ops::Range;

use zerocopy::little_endian::U32;

use crate::layout::WindowHead;

/// How the windows are cut (`mailrl.window`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowKind {
    /// Aligned to the minute and to the UTC day, as a clock on the wall.
    #[default]
    Calendar,
    /// Every 60 s and every 24 h, whatever the alignment.
    Rolling,
}

impl WindowKind {
    /// The name used in configuration and replies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calendar => "calendar",
            Self::Rolling => "rolling",
        }
    }

    /// The minute window, which counts messages.
    #[must_use]
    pub const fn minute(self) -> Shape {
        match self {
            Self::Calendar => Shape {
                slot_ms: 60_000,
                slots: 1,
            },
            Self::Rolling => Shape {
                slot_ms: 1_000,
                slots: 61,
            },
        }
    }

    /// The day window, which counts recipients.
    #[must_use]
    pub const fn day(self) -> Shape {
        match self {
            Self::Calendar => Shape {
                slot_ms: 86_400_000,
                slots: 1,
            },
            Self::Rolling => Shape {
                slot_ms: 300_000,
                slots: 289,
            },
        }
    }
}

/// A time, and the slot of each window that it lies in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub ms: u64,
    pub minute_slot: u32,
    pub day_slot: u32,
}

impl Now {
    pub fn of(kind: WindowKind, ms: u64) -> Self {
        let at = |minute: Shape, day: Shape| Self {
            ms,
            minute_slot: minute.slot_of(ms),
            day_slot: day.slot_of(ms),
        };
        // An arm for each kind: the compiler knows the lengths and need not divide.
        match kind {
            WindowKind::Calendar => at(WindowKind::Calendar.minute(), WindowKind::Calendar.day()),
            WindowKind::Rolling => at(WindowKind::Rolling.minute(), WindowKind::Rolling.day()),
        }
    }
}

/// The length of a window's slots and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Length of a slot in ms.
    pub slot_ms: u64,
    /// How many slots the window covers at once, the newest among them.
    pub slots: u32,
}

impl Shape {
    /// How many slots stand in the ring: all but the newest.
    #[must_use]
    pub const fn ring_len(self) -> usize {
        self.slots.saturating_sub(1) as usize
    }

    /// The slot that a time (ms since 1970) lies in.
    #[must_use]
    pub fn slot_of(self, ms: u64) -> u32 {
        let slot = ms.checked_div(self.slot_ms).unwrap_or_default();
        u32::try_from(slot).unwrap_or(u32::MAX)
    }

    /// When the window stops covering a slot, in ms since 1970.
    #[must_use]
    pub fn leaves_at(self, slot: u32) -> u64 {
        let first_without = u64::from(slot).saturating_add(u64::from(self.slots));
        first_without.saturating_mul(self.slot_ms)
    }

    /// Whether the window still covers `slot` when `newest` is its newest.
    #[must_use]
    pub const fn covers(self, slot: u32, newest: u32) -> bool {
        slot <= newest && newest.saturating_sub(slot) < self.slots
    }

    /// The place of a slot in the ring.
    fn place(self, slot: u32) -> usize {
        slot.checked_rem(self.slots.saturating_sub(1)).unwrap_or_default() as usize
    }
}

/// A window of one mailbox, on the bytes of its value.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    pub shape: Shape,
    pub head: &'a mut WindowHead,
    pub ring: &'a mut [U32],
}

impl Window<'_> {
    /// What is used when `now` is the newest slot.
    pub fn used(&self, now: u32) -> u32 {
        let head = self.head.slot.get();
        if now == head {
            return self.head.count.get().saturating_add(self.head.older.get());
        }
        if !self.shape.covers(head, now) {
            return 0;
        }
        let leaving = (self.oldest(head)..self.oldest(now)).map(|slot| self.in_ring(slot));
        let left = leaving.fold(0, u32::saturating_add);
        self.head
            .count
            .get()
            .saturating_add(self.head.older.get().saturating_sub(left))
    }

    /// The earliest time (ms since 1970) at which `amount` more fits under `limit`, if nothing else
    /// is counted until then. Asked only when it does not fit now.
    pub fn opens_at(&self, now: u32, limit: u32, amount: u32) -> u64 {
        let head = self.head.slot.get();
        let room = limit.saturating_sub(amount);
        let mut used = self.used(now);
        for slot in self.oldest(now).max(self.oldest(head))..head {
            used = used.saturating_sub(self.in_ring(slot));
            if used <= room {
                return self.shape.leaves_at(slot);
            }
        }
        self.shape.leaves_at(head)
    }

    /// Makes `now` the newest slot and counts `amount` in it. Gives the places of the ring that
    /// changed.
    pub fn count(&mut self, now: u32, amount: u32) -> Range<usize> {
        let changed = self.advance(now);
        self.head.count.set(self.head.count.get().saturating_add(amount));
        changed
    }

    /// Takes `amount` out of the slot it was counted in, if the window still holds that slot; never
    /// below zero. Gives the places of the ring that changed.
    pub fn take_back(&mut self, slot: u32, amount: u32) -> Range<usize> {
        let head = self.head.slot.get();
        if slot == head {
            self.head.count.set(self.head.count.get().saturating_sub(amount));
        } else if self.shape.covers(slot, head) {
            let place = self.shape.place(slot);
            if let Some(count) = self.ring.get_mut(place) {
                let taken = amount.min(count.get());
                count.set(count.get().saturating_sub(taken));
                self.head.older.set(self.head.older.get().saturating_sub(taken));
                return place..place.saturating_add(1);
            }
        }
        0..0
    }

    /// The counts that the window holds, as (slot, count), the newest slot last.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let head = self.head.slot.get();
        let older = (self.oldest(head)..head).map(|slot| (slot, self.in_ring(slot)));
        older.chain(std::iter::once((head, self.head.count.get())))
    }

    /// Replaces all counts; those that a window with this newest slot does not cover are dropped.
    pub fn refill(&mut self, newest: u32, counts: &[(u32, u32)]) {
        self.ring.fill(U32::ZERO);
        *self.head = WindowHead {
            slot: U32::new(newest),
            count: U32::ZERO,
            older: U32::ZERO,
        };
        for &(slot, amount) in counts {
            let (count, older) = (&mut self.head.count, &mut self.head.older);
            if slot == newest {
                count.set(count.get().saturating_add(amount));
            } else if self.shape.covers(slot, newest)
                && let Some(count) = self.ring.get_mut(self.shape.place(slot))
            {
                count.set(count.get().saturating_add(amount));
                older.set(older.get().saturating_add(amount));
            }
        }
    }

    /// Makes `now` the newest slot: the old head goes to its place in the ring, and every place
    /// whose slot has left is emptied. Only what differs is written, so that the range to replicate
    /// stays as short as the change.
    fn advance(&mut self, now: u32) -> Range<usize> {
        let head = self.head.slot.get();
        if now <= head {
            return 0..0;
        }
        let mut changed: Option<Range<usize>> = None;
        let (mut left, mut entered) = (0_u32, 0_u32);
        for slot in head.max(self.oldest(now))..now {
            let place = self.shape.place(slot);
            let Some(count) = self.ring.get_mut(place) else {
                continue;
            };
            let entering = if slot == head { self.head.count.get() } else { 0 };
            left = left.saturating_add(count.get());
            entered = entered.saturating_add(entering);
            if count.get() != entering {
                count.set(entering);
                let after = place.saturating_add(1);
                changed = Some(match changed {
                    Some(range) => range.start.min(place)..range.end.max(after),
                    None => place..after,
                });
            }
        }
        // As `used` adds it up, also where a damaged value has a wrong sum: no call frees budget by
        // being counted, and a sum that is too large goes with the last slot.
        let older = if self.shape.covers(head, now) {
            self.head.older.get().saturating_sub(left).saturating_add(entered)
        } else {
            0
        };
        *self.head = WindowHead {
            slot: U32::new(now),
            count: U32::ZERO,
            older: U32::new(older),
        };
        changed.unwrap_or(0..0)
    }

    /// The oldest slot covered when `newest` is the newest.
    fn oldest(&self, newest: u32) -> u32 {
        newest.saturating_sub(self.shape.slots.saturating_sub(1))
    }

    fn in_ring(&self, slot: u32) -> u32 {
        self.ring
            .get(self.shape.place(slot))
            .map_or(0, |count| count.get())
    }
}
