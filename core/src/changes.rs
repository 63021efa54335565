//! Which bytes of a value a call changed: what has to reach replicas and the append-only file.

use std::ops::Range;

/// Bytes between two ranges that are cheaper to send along than a second command: about what a
/// further `SETRANGE` and the `MULTI`/`EXEC` around two commands weigh with a key of 26 bytes.
const GAP_WORTH_BRIDGING: usize = 90;

/// Nearly all calls change fewer: both rings, the hot part, the pause, reservations that moved on. A
/// call with more has all of the value replicated.
const MOST: usize = 6;

/// What a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// These ranges of the value.
    Ranges(Ranges),
    /// All of it, or its length.
    Whole,
}

impl Changes {
    pub(crate) const fn none() -> Self {
        Self::Ranges(Ranges {
            ranges: [const { 0..0 }; MOST],
            len: 0,
        })
    }

    /// Adds a range. Ranges that are near each other become one.
    pub(crate) fn add(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self {
            Self::Whole => {}
            Self::Ranges(ranges) => {
                if !ranges.add(range) {
                    *self = Self::Whole;
                }
            }
        }
    }

    /// Adds the changed slots of a ring that begins at `offset`.
    pub(crate) fn add_slots(&mut self, offset: usize, slots: &Range<usize>) {
        let byte = |slot: usize| offset.saturating_add(slot.saturating_mul(4));
        self.add(byte(slots.start)..byte(slots.end));
    }
}

/// A few ranges of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges {
    ranges: [Range<usize>; MOST],
    len: usize,
}

impl Ranges {
    /// The ranges, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges.iter().take(self.len).cloned()
    }

    /// False if there is no place left.
    fn add(&mut self, range: Range<usize>) -> bool {
        for known in self.ranges.iter_mut().take(self.len) {
            let near = range.start <= known.end.saturating_add(GAP_WORTH_BRIDGING)
                && known.start <= range.end.saturating_add(GAP_WORTH_BRIDGING);
            if near {
                *known = known.start.min(range.start)..known.end.max(range.end);
                return true;
            }
        }
        let Some(free) = self.ranges.get_mut(self.len) else {
            return false;
        };
        *free = range;
        self.len = self.len.saturating_add(1);
        true
    }
}
