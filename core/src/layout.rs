//! The value of a mailbox: one plain string, little endian, version 1.
//!
//! | offset, calendar | offset, rolling | bytes | part |
//! | ---: | ---: | ---: | --- |
//! | 0 | 0 | 128 | [`Header`]: version, window kind, overrides, pause, turns |
//! | 128 | 128 | 0 / 1,152 | ring of the day window, a `u32` a slot |
//! | 128 | 1,280 | 0 / 240 | ring of the minute window, a `u32` a slot |
//! | 128 | 1,520 | 56 | two recent reservations ([`Entry`]) |
//! | 184 | 1,576 | 45 | [`Hot`]: what nearly every write changes |
//! | 229 | 1,621 | 56 | two recent reservations |
//! | 285 | 1,677 | 28 each | older open reservations, none or 8 to 2,048 places |
//!
//! The hot part stands amid the recent reservations, so that a write of both is one short range.
//! The structs below have no padding and no alignment: they are laid over the value's bytes.

use std::ops::Range;

use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::changes::Changes;
use crate::error::BadState;
use crate::limits::Lane;
use crate::value::Value;
use crate::window::{Window, WindowKind};

const MAGIC: [u8; 3] = *b"MRL";
const VERSION: u8 = 1;

/// Set while the value holds changes that were made without replicating them (a clock that stepped
/// back or a changed window kind, met by a denied call): the next write replicates all of it.
const UNREPLICATED: u8 = 1;

/// How many recent reservations stand around the hot part: one more than the client's default
/// concurrency, so that callers who commit need no more.
pub(crate) const RECENT: usize = 4;
/// The fewest places for older reservations, where there are any.
pub(crate) const FEWEST_PLACES: usize = 8;
/// The most places: twice the open reservations that are remembered, so that making room is rare.
pub(crate) const MOST_PLACES: usize = 2_048;

/// The operator's limits for this mailbox; 0 where there is none.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Overrides {
    pub per_minute: U32,
    pub per_day: U32,
    pub concurrent: U32,
}

/// A queue of those who were denied, of one window and one lane. Advice, never replicated.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Turns {
    /// When the last one in the queue comes back, in µs since 1970; 0: no queue.
    pub last_us: U64,
    /// When the current period began, in ms since 1970.
    pub period_start: U64,
    /// How many were allowed in the current period.
    pub allowed: U32,
    pub reserved: U32,
}

/// A window's queues.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Lanes {
    pub normal: Turns,
    pub bulk: Turns,
}

impl Lanes {
    /// The queue of a lane.
    pub fn of(&mut self, lane: Lane) -> &mut Turns {
        match lane {
            Lane::Normal => &mut self.normal,
            Lane::Bulk => &mut self.bulk,
        }
    }
}

/// What is seldom written.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    magic: [u8; 3],
    version: u8,
    kind: u8,
    flags: u8,
    reserved: [u8; 2],
    pub overrides: Overrides,
    reserved_2: U32,
    /// Nobody sends before this time, in ms since 1970.
    pub paused_until: U64,
    /// The queues of the minute window.
    pub minute_turns: Lanes,
    /// The queues of the day window.
    pub day_turns: Lanes,
}

/// The newest slot of a window.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct WindowHead {
    /// The slot's number since 1970.
    pub slot: U32,
    /// What is counted in it.
    pub count: U32,
    /// The sum of the ring: what the older slots hold. Kept, since 348 additions a call are dearer.
    pub older: U32,
}

/// What nearly every write changes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Hot {
    pub minute: WindowHead,
    pub day: WindowHead,
    /// When this value was last written, in ms since 1970: an earlier time means that the clock
    /// stepped back.
    pub written_at: Time48,
    pub log: LogHead,
}

/// A time in ms since 1970, in 48 bits: enough until the year 10889.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Time48 {
    low: U32,
    high: U16,
}

impl Time48 {
    pub fn get(self) -> u64 {
        u64::from(self.low.get()) | u64::from(self.high.get()) << 32
    }

    /// A time past the year 10889 becomes the last one before it.
    pub fn set(&mut self, ms: u64) {
        let bytes = ms.min((1 << 48) - 1).to_le_bytes();
        if let Ok((time, _)) = Self::read_from_prefix(&bytes) {
            *self = time;
        }
    }
}

/// What is remembered of the reservations as a whole.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct LogHead {
    /// The number of the next reservation.
    pub next_seq: U32,
    /// The place of the oldest of the older reservations.
    pub first: U16,
    /// How many places from there on are taken, closed reservations among them.
    pub taken: U16,
    /// How many of those are not closed, though the lease of some may be over.
    pub open: U16,
    /// No lease of an open one ends before this time, in s since 1970.
    pub earliest_end_s: U32,
    /// Which of the recent places hold one that is not closed: bit n for place n.
    pub recent: u8,
}

/// No value is shorter than this, in bytes.
pub const SHORTEST_VALUE: usize = Offsets::of(WindowKind::Calendar).len(0);

/// A reservation.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Entry {
    /// When it was made, in ms since 1970: the first half of its id.
    pub made_at: U64,
    /// The second half of its id, one more than that of the one before.
    pub seq: U32,
    /// What it took out of the day; 0 once it is closed.
    pub recipients: U32,
    /// The slot of the minute window that counts it; 0 if none does any more.
    pub minute_slot: U32,
    /// The slot of the day window that counts it; 0 if none does any more.
    pub day_slot: U32,
    /// How long after `made_at` its lease ends, in ms; below zero once the clock stepped back.
    pub lease_ms: I32,
}

/// The hot part and the recent reservations around it.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Middle {
    before: [Entry; 2],
    hot: Hot,
    after: [Entry; 2],
}

pub(crate) const ENTRY_LEN: usize = size_of::<Entry>();
const _: () = assert!(size_of::<Header>() == 128 && size_of::<Hot>() == 45 && ENTRY_LEN == 28);

/// Where the parts of a value begin, by window kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offsets {
    pub overrides: usize,
    pub pause: usize,
    pub day_ring: usize,
    pub minute_ring: usize,
    recent: usize,
    pub hot: usize,
    pub hot_end: usize,
    older: usize,
}

impl Offsets {
    pub const fn of(kind: WindowKind) -> Self {
        let day_ring = size_of::<Header>();
        let minute_ring = day_ring.saturating_add(kind.day().ring_len().saturating_mul(4));
        let recent = minute_ring.saturating_add(kind.minute().ring_len().saturating_mul(4));
        let hot = recent.saturating_add(std::mem::offset_of!(Middle, hot));
        Self {
            overrides: std::mem::offset_of!(Header, overrides),
            pause: std::mem::offset_of!(Header, paused_until),
            day_ring,
            minute_ring,
            recent,
            hot,
            hot_end: hot.saturating_add(size_of::<Hot>()),
            older: recent.saturating_add(size_of::<Middle>()),
        }
    }

    /// Length of a value with this many places for older reservations.
    pub const fn len(self, places: usize) -> usize {
        self.older.saturating_add(places.saturating_mul(ENTRY_LEN))
    }

    /// Where a reservation stands. The first places are the recent ones, the nearest to the hot part
    /// first.
    pub fn place(self, place: usize) -> Range<usize> {
        let start = match place {
            0 => self.hot.saturating_sub(ENTRY_LEN),
            1 => self.recent,
            2 => self.hot_end,
            3 => self.hot_end.saturating_add(ENTRY_LEN),
            _ => self.len(place.saturating_sub(RECENT)),
        };
        start..start.saturating_add(ENTRY_LEN)
    }
}

/// The parts of a value, laid over its bytes.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub kind: WindowKind,
    pub header: &'a mut Header,
    pub minute: Window<'a>,
    pub day: Window<'a>,
    pub clock: &'a mut Time48,
    pub log: Log<'a>,
}

/// The open reservations: the recent ones, and a ring of places for those that stay open longer.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    pub before: &'a mut [Entry; 2],
    pub after: &'a mut [Entry; 2],
    pub older: &'a mut [Entry],
    pub head: &'a mut LogHead,
}

impl LogHead {
    /// Whether it can be the head of this many older places.
    fn fits(&self, places: usize) -> bool {
        let (first, taken, open) = (self.first.get(), self.taken.get(), self.open.get());
        usize::from(first) < places.max(1)
            && usize::from(taken) <= places
            && open <= taken
            && usize::from(self.recent) < 1 << RECENT
    }
}

impl Header {
    /// Takes over all but what the layout says of itself.
    pub fn take_over(&mut self, other: &Self) {
        let Self {
            magic, version, kind, ..
        } = *self;
        *self = Self {
            magic,
            version,
            kind,
            ..*other
        };
    }
}

impl<'a> Parts<'a> {
    /// Lays the parts over a value, after checking that it is one.
    pub fn of(value: &'a mut [u8]) -> Result<Self, BadState> {
        let (header, rest) = Header::mut_from_prefix(value).map_err(|_| BadState::Length)?;
        if header.magic != MAGIC {
            return Err(BadState::Foreign);
        }
        if header.version != VERSION {
            return Err(BadState::Version(header.version));
        }
        let kind = kind_from_byte(header.kind).ok_or(BadState::Damaged)?;
        let (minute, day) = (kind.minute(), kind.day());
        let (day_ring, rest) = ring(rest, day.ring_len())?;
        let (minute_ring, rest) = ring(rest, minute.ring_len())?;
        let (middle, rest) = Middle::mut_from_prefix(rest).map_err(|_| BadState::Length)?;
        let Middle { before, hot, after } = middle;
        let older = <[Entry]>::mut_from_bytes(rest).map_err(|_| BadState::Length)?;
        let len = older.len();
        if len != 0 && (!len.is_power_of_two() || !(FEWEST_PLACES..=MOST_PLACES).contains(&len)) {
            return Err(BadState::Length);
        }
        if !hot.log.fits(len) {
            return Err(BadState::Damaged);
        }
        Ok(Self {
            kind,
            header,
            minute: Window {
                shape: minute,
                head: &mut hot.minute,
                ring: minute_ring,
            },
            day: Window {
                shape: day,
                head: &mut hot.day,
                ring: day_ring,
            },
            clock: &mut hot.written_at,
            log: Log {
                before,
                after,
                older,
                head: &mut hot.log,
            },
        })
    }

    /// Marks that the value holds changes that are not replicated with the call that made them.
    pub fn set_unreplicated(&mut self) {
        self.header.flags = UNREPLICATED;
    }

    /// Completes what a call changed by what was not replicated before it.
    pub fn replicate(&mut self, changes: &mut Changes) {
        if self.header.flags & UNREPLICATED != 0 {
            self.header.flags = 0;
            *changes = Changes::Whole;
        }
    }
}

/// Makes a value of this kind in which nothing is used and nothing open.
pub(crate) fn clear(value: &mut impl Value, kind: WindowKind, places: usize) {
    value.resize(Offsets::of(kind).len(places));
    value.bytes().fill(0);
    if let Ok((header, _)) = Header::mut_from_prefix(value.bytes()) {
        header.magic = MAGIC;
        header.version = VERSION;
        header.kind = match kind {
            WindowKind::Calendar => 0,
            WindowKind::Rolling => 1,
        };
    }
}

fn kind_from_byte(byte: u8) -> Option<WindowKind> {
    match byte {
        0 => Some(WindowKind::Calendar),
        1 => Some(WindowKind::Rolling),
        _ => None,
    }
}

fn ring(bytes: &mut [u8], len: usize) -> Result<(&mut [U32], &mut [u8]), BadState> {
    <[U32]>::mut_from_prefix_with_elems(bytes, len).map_err(|_| BadState::Length)
}
