//! A naive mailbox: every counted message is remembered with the times it counts from, and each
//! question is answered by looking at all of them. Slow, and too simple to be wrong.

mod play;
mod step;

use mailrl_core::{Config, Lane, MOST_OPEN, Override, Reason, Request, Shape, Verdict, WindowKind, Wish};

pub use play::play;
pub use step::Step;

/// A counted message. Where a window has dropped it for good, its time there is `None`.
#[derive(Debug, Clone)]
struct Message {
    id: (u64, u32),
    recipients: u32,
    minute_at: Option<u64>,
    day_at: Option<u64>,
    /// Until when it is open; `None` once it is closed.
    open_until: Option<u64>,
}

/// All that was counted.
#[derive(Debug)]
pub struct Model {
    messages: Vec<Message>,
    kind: WindowKind,
    paused_until: u64,
    overrides: Wish,
    written_at: u64,
    counted_at: u64,
    next_seq: u32,
}

/// What the model expects of one reservation.
#[derive(Debug, PartialEq, Eq)]
pub struct Expected {
    pub verdict: Verdict,
    pub minute_left: u32,
    pub day_left: u32,
}

fn covers(shape: Shape, at: u64, now: u64) -> bool {
    let age = shape.slot_of(now) - shape.slot_of(at);
    age < shape.slots
}

impl Model {
    pub fn new(kind: WindowKind) -> Self {
        Self {
            messages: Vec::new(),
            kind,
            paused_until: 0,
            overrides: Wish::default(),
            written_at: 0,
            counted_at: 0,
            next_seq: 0,
        }
    }

    pub fn minute_used(&self, now: u64) -> u64 {
        let counted = self.messages.iter().filter_map(|message| message.minute_at);
        counted.filter(|&at| covers(self.kind.minute(), at, now)).count() as u64
    }

    pub fn day_used(&self, now: u64) -> u64 {
        let counted = self
            .messages
            .iter()
            .filter(|message| message.day_at.is_some_and(|at| covers(self.kind.day(), at, now)));
        counted.map(|message| u64::from(message.recipients)).sum()
    }

    pub fn open(&self, now: u64) -> usize {
        self.messages
            .iter()
            .filter(|message| message.open_until.is_some_and(|until| now < until))
            .count()
    }

    pub fn paused_for(&self, now: u64) -> u64 {
        self.paused_until.saturating_sub(now)
    }

    pub fn overrides(&self) -> Wish {
        self.overrides
    }

    pub fn reserve(&mut self, config: &Config, request: &Request, now: u64) -> Expected {
        self.settle(config.kind, now);
        let of_lane = |limit: u32| match request.lane {
            Lane::Normal => limit,
            Lane::Bulk => (limit * config.bulk_share / 100).max(1),
        };
        let minute = [self.overrides.per_minute, request.wish.per_minute];
        let day = [self.overrides.per_day, request.wish.per_day];
        let first =
            |limits: [Option<u32>; 2], default| limits.into_iter().flatten().next().unwrap_or(default);
        let per_minute = u64::from(of_lane(first(minute, config.per_minute)));
        let per_day = of_lane(first(day, config.per_day));
        let asked_for = of_lane(request.wish.per_day.unwrap_or(config.per_day));
        let verdict = if (per_day + 1..=asked_for).contains(&request.recipients) {
            Verdict::Denied {
                reason: Reason::Day,
                retry_after_ms: 3_600_000,
            }
        } else {
            self.decide(per_minute, per_day, request, now)
        };
        if let Verdict::Allowed(id) = verdict {
            self.next_seq += 1;
            self.written_at = now;
            self.counted_at = now;
            self.messages.push(Message {
                id: (id.ms, id.seq),
                recipients: request.recipients,
                minute_at: Some(now),
                day_at: Some(now),
                open_until: Some(now + u64::from(request.lease_ms)),
            });
            if self.open(now) > MOST_OPEN {
                let is_open = |message: &&mut Message| message.open_until.is_some_and(|until| now < until);
                if let Some(oldest) = self.messages.iter_mut().find(is_open) {
                    oldest.open_until = None;
                }
            }
        }
        let left = |limit: u64, used: u64| u32::try_from(limit.saturating_sub(used)).unwrap();
        Expected {
            verdict,
            minute_left: left(per_minute, self.minute_used(now)),
            day_left: left(u64::from(per_day), self.day_used(now)),
        }
    }

    fn decide(&self, per_minute: u64, per_day: u32, request: &Request, now: u64) -> Verdict {
        let recipients = u64::from(request.recipients);
        if request.recipients > per_day {
            return Verdict::TooLarge { per_day };
        }
        // The earliest moment at which there is room is the start of some slot.
        let opens = |shape: Shape, room: &dyn Fn(u64) -> bool| {
            (1_u64..400)
                .map(|n| (u64::from(shape.slot_of(now)) + n) * shape.slot_ms)
                .find(|&at| room(at))
                .unwrap()
        };
        let minute_room = |at: u64| self.minute_used(at) < per_minute;
        let day_room = |at: u64| self.day_used(at) + recipients <= u64::from(per_day);
        let mut denials = Vec::new();
        if !minute_room(now) {
            denials.push((opens(self.kind.minute(), &minute_room), Reason::Minute));
        }
        if !day_room(now) {
            denials.push((opens(self.kind.day(), &day_room), Reason::Day));
        }
        if self.paused_until > now {
            denials.push((self.paused_until, Reason::Paused));
        }
        let latest = denials.iter().map(|&(until, _)| until).max();
        if let Some(&(until, reason)) = denials.iter().find(|&&(until, _)| Some(until) == latest) {
            return Verdict::Denied {
                reason,
                retry_after_ms: until - now,
            };
        }
        let concurrent = self.overrides.concurrent.or(request.wish.concurrent);
        if concurrent.is_some_and(|places| self.open(now) >= places as usize) {
            return Verdict::Denied {
                reason: Reason::Concurrent,
                retry_after_ms: 250,
            };
        }
        Verdict::Allowed(mailrl_core::ReservationId {
            ms: now,
            seq: self.next_seq,
        })
    }

    pub fn release(&mut self, kind: WindowKind, id: (u64, u32), now: u64) -> bool {
        self.settle(kind, now);
        let open =
            |message: &Message| message.id == id && message.open_until.is_some_and(|until| now < until);
        let Some(place) = self.messages.iter().position(open) else {
            return false;
        };
        self.messages.remove(place);
        true
    }

    pub fn commit(&mut self, kind: WindowKind, id: (u64, u32), now: u64) -> bool {
        self.settle(kind, now);
        let rolling = self.kind == WindowKind::Rolling;
        let found = self
            .messages
            .iter_mut()
            .find(|message| message.id == id && message.open_until.is_some_and(|until| now < until));
        let Some(message) = found else { return false };
        message.open_until = None;
        if rolling {
            message.minute_at = Some(now);
            message.day_at = Some(now);
            self.written_at = now;
            self.counted_at = now;
        }
        true
    }

    pub fn pause(&mut self, kind: WindowKind, ms: u32, now: u64) {
        self.settle(kind, now);
        let until = if ms == 0 {
            0
        } else {
            self.paused_until.max(now + u64::from(ms))
        };
        if until != self.paused_until {
            self.paused_until = until;
            self.written_at = now;
        }
    }

    pub fn override_limits(&mut self, kind: WindowKind, wanted: Override, now: u64) -> Wish {
        self.settle(kind, now);
        let before = self.overrides;
        self.overrides = match wanted {
            Override::Reset => Wish::default(),
            Override::Set(wish) => Wish {
                per_minute: wish.per_minute.or(before.per_minute),
                per_day: wish.per_day.or(before.per_day),
                concurrent: wish.concurrent.or(before.concurrent),
            },
        };
        self.overrides
    }

    /// A clock that stepped back: what lies in the future is as of now, and what lasts is moved by
    /// the step; what had left a window before it does not come back. Another window kind: what was used is as of now.
    fn settle(&mut self, kind: WindowKind, now: u64) {
        if now < self.written_at {
            let step = self.written_at - now;
            for message in &mut self.messages {
                let back = |at: &mut Option<u64>, shape: Shape| {
                    *at = at.filter(|&at| covers(shape, at, self.counted_at.max(at)));
                    *at = at.map(|at| {
                        if shape.slot_of(at) > shape.slot_of(now) {
                            now
                        } else {
                            at
                        }
                    });
                };
                back(&mut message.minute_at, self.kind.minute());
                back(&mut message.day_at, self.kind.day());
                message.open_until = message.open_until.map(|until| until.saturating_sub(step));
            }
            self.paused_until = self.paused_until.saturating_sub(step);
            self.written_at = now;
            self.counted_at = self.counted_at.min(now);
        }
        if kind != self.kind {
            for message in &mut self.messages {
                let moved =
                    |at: Option<u64>, shape: Shape| at.filter(|&at| covers(shape, at, now)).map(|_| now);
                message.minute_at = moved(message.minute_at, self.kind.minute());
                message.day_at = moved(message.day_at, self.kind.day());
            }
            self.kind = kind;
            self.written_at = now;
            self.counted_at = now;
        }
    }
}
