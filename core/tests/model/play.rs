//! The decision and the model, side by side.

use mailrl_core::{
    Changes, Config, Lane, Request, ReservationId, Verdict, WindowKind, Wish, commit, override_limits, pause,
    release, reserve, status,
};

use super::step::Step;
use super::{Expected, Model};

/// The clock steps back no further than this before the start, in ms.
const FURTHEST_BACK: u64 = 1_000_000_000;
/// No more bursts after this many reservations: the model looks at all of them each time.
const ENOUGH: usize = 1_300;

/// Takes each step with both, from a mailbox without a value at `start` (ms since 1970).
///
/// # Panics
/// If they differ in an answer or in how the mailbox stands after it, or if a call changed more of
/// the value than it said.
pub fn play(kind: WindowKind, start: u64, steps: impl IntoIterator<Item = Step>) {
    let mut mailbox = Mailbox::new(kind, start);
    for step in steps {
        let before = mailbox.value.clone();
        mailbox.take(step);
        // The model takes a step of the clock or of the window kind with the next call only.
        if mailbox.value != before {
            mailbox.compare();
        }
    }
}

struct Mailbox {
    now: u64,
    earliest: u64,
    config: Config,
    value: Vec<u8>,
    replica: Vec<u8>,
    ids: Vec<ReservationId>,
    model: Model,
}

impl Mailbox {
    fn new(kind: WindowKind, start: u64) -> Self {
        Self {
            now: start,
            earliest: start.saturating_sub(FURTHEST_BACK),
            config: Config {
                per_minute: 6,
                per_day: 40,
                kind,
                pacing: false,
                bulk_share: 80,
            },
            value: Vec::new(),
            replica: Vec::new(),
            ids: Vec::new(),
            model: Model::new(kind),
        }
    }

    fn take(&mut self, step: Step) {
        let (now, kind) = (self.now, self.config.kind);
        match step {
            Step::Reserve {
                recipients,
                per_minute,
                per_day,
                concurrent,
                lane,
                lease_ms,
            } => {
                let wish = Wish {
                    per_minute,
                    per_day,
                    concurrent,
                };
                self.reserve(&Request {
                    recipients,
                    wish,
                    lane,
                    lease_ms,
                });
            }
            Step::Burst(count, lease_ms) => {
                let wish = Wish {
                    per_minute: Some(10_000),
                    per_day: Some(10_000),
                    concurrent: None,
                };
                let request = Request {
                    recipients: 1,
                    wish,
                    lane: Lane::Normal,
                    lease_ms,
                };
                for _ in 0..count {
                    if self.ids.len() > ENOUGH || !self.reserve(&request) {
                        break;
                    }
                }
            }
            Step::Release(nth) => {
                if let Some(id) = self.id(nth) {
                    let changes = release(&mut self.value, kind, id, now).unwrap();
                    assert_eq!(changes.is_some(), self.model.release(kind, (id.ms, id.seq), now));
                    self.replicate(changes.as_ref());
                }
            }
            Step::Commit(nth) => {
                if let Some(id) = self.id(nth) {
                    let changes = commit(&mut self.value, kind, id, now).unwrap();
                    assert_eq!(changes.is_some(), self.model.commit(kind, (id.ms, id.seq), now));
                    self.replicate(changes.as_ref());
                }
            }
            Step::Pause(ms) => {
                let paused = pause(&mut self.value, kind, ms, now).unwrap();
                self.model.pause(kind, ms, now);
                self.replicate(paused.changes.as_ref());
            }
            Step::Override(wanted) => {
                let overridden = override_limits(&mut self.value, kind, wanted, now).unwrap();
                assert_eq!(overridden.limits, self.model.override_limits(kind, wanted, now));
                self.replicate(overridden.changes.as_ref());
            }
            Step::Forward(ms) => self.now += ms,
            Step::Back(ms) => self.now = now.saturating_sub(ms).max(self.earliest),
            Step::Switch(kind) => self.config.kind = kind,
            Step::Limits(per_minute, per_day) => {
                (self.config.per_minute, self.config.per_day) = (per_minute, per_day);
            }
        }
    }

    /// Whether it was allowed.
    fn reserve(&mut self, request: &Request) -> bool {
        let answer = reserve(&mut self.value, &self.config, request, self.now).unwrap();
        let expected = self.model.reserve(&self.config, request, self.now);
        let answered = Expected {
            verdict: answer.verdict,
            minute_left: answer.minute_left,
            day_left: answer.day_left,
        };
        assert_eq!(answered, expected);
        if let Verdict::Allowed(id) = answer.verdict {
            self.ids.push(id);
            self.replicate(Some(&answer.changes));
        }
        matches!(answer.verdict, Verdict::Allowed(_))
    }

    fn id(&self, nth: usize) -> Option<ReservationId> {
        let place = nth.checked_rem(self.ids.len())?;
        self.ids.get(place).copied()
    }

    /// Applies what a call says it changed to a copy, as a replica would; then both must be the same.
    fn replicate(&mut self, changes: Option<&Changes>) {
        let (replica, value) = (&mut self.replica, &self.value);
        match changes {
            None => return,
            Some(Changes::Whole) => value.clone_into(replica),
            Some(Changes::Ranges(ranges)) => {
                for range in ranges.iter() {
                    replica.resize(replica.len().max(range.end), 0);
                    replica[range.clone()].copy_from_slice(&value[range]);
                }
            }
        }
        assert!(replica == value, "the call changed more than it said");
    }

    fn compare(&self) {
        let (model, now) = (&self.model, self.now);
        let here = status(&self.value, &self.config, now).unwrap();
        assert_eq!(u64::from(here.minute.used), model.minute_used(now));
        assert_eq!(u64::from(here.day.used), model.day_used(now));
        assert_eq!(here.open, model.open(now));
        assert_eq!(here.paused_for_ms, model.paused_for(now));
        assert_eq!(here.overrides, model.overrides());
    }
}
