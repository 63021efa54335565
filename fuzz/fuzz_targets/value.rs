//! Whatever stands under a mailbox's key: refused and left as it is, or a state that every call
//! answers by the rules. No budget is overrun, and nothing blocks the mailbox for good.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use mailrl_core::{
    BadState, Changes, Config, Lane, MOST_PAUSE_MS, MOST_RETRY_AFTER_MS, Override, Reason, Request,
    ReservationId, Status, Verdict, WindowKind, Wish, commit, override_limits, pause, release, reserve,
    status,
};
use mailrl_fuzz::{Step, kind, step};

/// The values in the corpus were written about here, in ms since 1970.
const WRITTEN_AT: u64 = 1_700_000_000_000;
/// The clock is asked for a while that none of the windows' slots overflow in, in ms since 1970: to
/// the year 2096.
const LATEST: u64 = 4_000_000_000_000;
/// So long after the last call a mailbox has its whole budget again, in ms.
const RECOVERY: u64 = MOST_RETRY_AFTER_MS + MOST_PAUSE_MS as u64;

/// What a call gives, or why it does not take the value.
type Taken<T> = std::result::Result<T, BadState>;
/// [`release`] or [`commit`].
type Close = fn(&mut Vec<u8>, WindowKind, ReservationId, u64) -> Taken<Option<Changes>>;

/// Each call is looked at from all sides, which takes its time.
const LONGEST_BURST: u16 = 40;

fuzz_target!(|input: &[u8]| {
    let _ = calls(Unstructured::new(input));
});

fn calls(mut bytes: Unstructured<'_>) -> Result<()> {
    let config = Config {
        per_minute: bytes.int_in_range(1..=50)?,
        per_day: bytes.int_in_range(1..=20_000)?,
        kind: kind(&mut bytes)?,
        pacing: bytes.arbitrary()?,
        bulk_share: bytes.int_in_range(1..=100)?,
    };
    let now = match bytes.arbitrary::<u8>()? {
        0 => bytes.int_in_range(0..=LATEST)?,
        _ => WRITTEN_AT + bytes.int_in_range(0..=u64::from(MOST_PAUSE_MS))?,
    };
    let steps = bytes.int_in_range(1..=12)?;
    let steps: Vec<Step> = (0..steps).map(|_| step(&mut bytes)).collect::<Result<_>>()?;
    let value = bytes.take_rest().to_vec();
    let mut mailbox = Mailbox {
        ids: ids_in(&value),
        replica: value.clone(),
        value,
        config,
        now,
    };
    for step in steps {
        mailbox.take(step);
    }
    mailbox.recovers();
    Ok(())
}

/// What may be the ids of reservations: each time that is near now, with the number behind it.
fn ids_in(value: &[u8]) -> Vec<ReservationId> {
    let ids = value.windows(12).filter_map(|bytes| {
        let (ms, seq) = bytes.split_at(8);
        let id = ReservationId {
            ms: u64::from_le_bytes(ms.try_into().ok()?),
            seq: u32::from_le_bytes(seq.try_into().ok()?),
        };
        (WRITTEN_AT..WRITTEN_AT + 1_000_000_000)
            .contains(&id.ms)
            .then_some(id)
    });
    ids.take(40).collect()
}

struct Mailbox {
    value: Vec<u8>,
    replica: Vec<u8>,
    config: Config,
    now: u64,
    ids: Vec<ReservationId>,
}

impl Mailbox {
    fn take(&mut self, step: Step) {
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
                    per_minute: Some(u32::MAX),
                    per_day: Some(u32::MAX),
                    concurrent: None,
                };
                let request = Request {
                    recipients: 1,
                    wish,
                    lane: Lane::Normal,
                    lease_ms,
                };
                for _ in 0..count.min(LONGEST_BURST) {
                    self.reserve(&request);
                }
            }
            Step::Release(nth) => {
                if let Some((before, after)) = self.close(nth, release) {
                    assert!(after.minute.used <= before.minute.used && after.day.used <= before.day.used);
                }
            }
            Step::Commit(nth) => {
                if let Some((before, after)) = self.close(nth, commit) {
                    assert!(after.minute.used >= before.minute.used && after.day.used >= before.day.used);
                }
            }
            Step::Pause(ms) => {
                let (kind, now) = (self.config.kind, self.now);
                let paused = self
                    .call(|value| pause(value, kind, ms, now).map(|paused| (paused.changes, paused.until)));
                if let Some((until, after)) = paused {
                    assert_eq!(after.paused_for_ms, until.saturating_sub(now));
                    assert!(after.paused_for_ms <= MOST_PAUSE_MS.into());
                }
            }
            Step::Override(wanted) => {
                let (kind, now) = (self.config.kind, self.now);
                let set = self.call(|value| {
                    override_limits(value, kind, wanted, now).map(|set| (set.changes, set.limits))
                });
                if let Some((limits, after)) = set {
                    assert_eq!(after.overrides, limits);
                    assert!(wanted != Override::Reset || limits == Wish::default());
                }
            }
            Step::Forward(ms) => self.now = (self.now + ms).min(LATEST),
            Step::Back(ms) => self.now = self.now.saturating_sub(ms),
            Step::Switch(kind) => self.config.kind = kind,
            Step::Limits(per_minute, per_day) => {
                (self.config.per_minute, self.config.per_day) = (per_minute, per_day);
            }
        }
    }

    /// Makes a call. One that is refused leaves the value alone, and the value is then refused to
    /// all; one that is not says what it changed. Gives what it gave, and how the mailbox stands.
    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Vec<u8>) -> Taken<(Option<Changes>, T)>,
    ) -> Option<(T, Status)> {
        let before = self.value.clone();
        let stood = self.status();
        match call(&mut self.value) {
            Err(error) => {
                assert!(self.value == before, "refused, and changed all the same");
                assert_eq!(stood, Err(error));
                None
            }
            Ok((changes, given)) => {
                assert!(stood.is_ok(), "one call takes what another refuses: {stood:?}");
                if let Some(changes) = changes {
                    self.replicate(&changes);
                } else {
                    assert_eq!(self.status(), stood, "nothing changed, it said");
                }
                Some((given, self.status().expect("a value that was taken")))
            }
        }
    }

    fn status(&self) -> Taken<Status> {
        status(&self.value, &self.config, self.now)
    }

    fn reserve(&mut self, request: &Request) {
        let (config, now) = (self.config, self.now);
        let stood = self.status();
        let answer = self.call(|value| {
            reserve(value, &config, request, now).map(|answer| {
                let allowed = matches!(answer.verdict, Verdict::Allowed(_));
                (allowed.then(|| answer.changes.clone()), answer)
            })
        });
        let (Some((answer, after)), Ok(stood)) = (answer, stood) else {
            return;
        };
        let of_lane = |limit: u32| match request.lane {
            Lane::Normal => limit,
            Lane::Bulk => u32::try_from(u64::from(limit) * u64::from(config.bulk_share) / 100)
                .unwrap()
                .max(1),
        };
        let (by_operator, wish) = (stood.overrides, request.wish);
        let per_minute = of_lane(
            by_operator
                .per_minute
                .or(wish.per_minute)
                .unwrap_or(config.per_minute),
        );
        let per_day = of_lane(by_operator.per_day.or(wish.per_day).unwrap_or(config.per_day));
        let places = by_operator.concurrent.or(wish.concurrent);
        let minute_is_full = stood.minute.used >= per_minute;
        let day_is_full = u64::from(stood.day.used) + u64::from(request.recipients) > per_day.into();
        let is_paused = stood.paused_for_ms > 0;
        let no_place = places.is_some_and(|places| stood.open >= places as usize);
        match answer.verdict {
            Verdict::Allowed(id) => {
                assert!(
                    !minute_is_full && !day_is_full && !is_paused && !no_place,
                    "{stood:?}"
                );
                assert_eq!(after.minute.used, stood.minute.used + 1);
                assert_eq!(after.day.used, stood.day.used + request.recipients);
                self.ids.push(id);
            }
            Verdict::TooLarge { per_day: whole } => {
                assert!(whole == per_day && request.recipients > per_day);
            }
            Verdict::Denied {
                reason,
                retry_after_ms,
            } => {
                assert!(
                    (1..=MOST_RETRY_AFTER_MS).contains(&retry_after_ms),
                    "{retry_after_ms}"
                );
                assert!(match reason {
                    Reason::Minute => minute_is_full,
                    Reason::Day => day_is_full,
                    Reason::Paused => is_paused,
                    Reason::Concurrent => no_place,
                });
            }
        }
    }

    /// Closes a reservation. If it was open, gives how the mailbox stood before and stands after it.
    fn close(&mut self, nth: usize, close: Close) -> Option<(Status, Status)> {
        let id = *self.ids.get(nth.checked_rem(self.ids.len())?)?;
        let (kind, now) = (self.config.kind, self.now);
        let stood = self.status();
        let (was_open, after) = self.call(|value| {
            close(value, kind, id, now).map(|changes| {
                let was_open = changes.is_some();
                (changes, was_open)
            })
        })?;
        let before = stood.ok().filter(|_| was_open)?;
        assert_eq!(after.open + 1, before.open);
        Some((before, after))
    }

    /// Applies what a call says it changed to a copy, as a replica would. Turns are advice and are
    /// not replicated.
    fn replicate(&mut self, changes: &Changes) {
        match changes {
            Changes::Whole => self.value.clone_into(&mut self.replica),
            Changes::Ranges(ranges) => {
                for range in ranges.iter() {
                    self.replica.resize(self.replica.len().max(range.end), 0);
                    self.replica[range.clone()].copy_from_slice(&self.value[range]);
                }
            }
        }
        let replica = status(&self.replica, &self.config, self.now);
        assert_eq!(replica, self.status(), "the call changed more than it said");
        assert!(self.config.pacing || self.replica == self.value);
    }

    /// Whatever it held, a call brings it up to the present; and once nobody has called for long
    /// enough one more message may go out.
    fn recovers(&mut self) {
        let request = Request {
            recipients: 1,
            wish: Wish::default(),
            lane: Lane::Bulk,
            lease_ms: 1,
        };
        self.reserve(&request);
        self.now += RECOVERY;
        if let Ok(answer) = reserve(&mut self.value, &self.config, &request, self.now) {
            assert!(matches!(answer.verdict, Verdict::Allowed(_)), "{answer:?}");
        }
    }
}
