//! The same calls with turns and without: all that differs are the retry times, and who waits that
//! long is allowed.

use mailrl_core::{
    Config, Lane, OVERRIDE_WAIT_MS, Override, Reason, Request, ReservationId, Verdict, WindowKind, Wish,
    commit, override_limits, pause, release, reserve,
};
use proptest::prelude::*;

/// The part of a value that turns stand in.
const TURNS: std::ops::Range<usize> = 32..128;

#[derive(Debug, Clone)]
enum Step {
    Reserve {
        times: u8,
        recipients: u32,
        wish: Wish,
        lane: Lane,
    },
    Close(prop::sample::Index, bool),
    Pause(u32),
    Forward(u64),
    Back(u64),
    Configure(WindowKind, u32, u32),
    Override(Override),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let limit = |limits| prop::option::weighted(0.2, limits);
    let wish = (limit(1_u32..12), limit(4_u32..60)).prop_map(|(per_minute, per_day)| Wish {
        per_minute,
        per_day,
        concurrent: None,
    });
    let lane = prop_oneof![Just(Lane::Normal), Just(Lane::Bulk)];
    let kind = prop_oneof![Just(WindowKind::Calendar), Just(WindowKind::Rolling)];
    let step = prop_oneof![
        8 => (1_u8..20, 1_u32..8, wish.clone(), lane)
            .prop_map(|(times, recipients, wish, lane)| Step::Reserve { times, recipients, wish, lane }),
        3 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(index, out)| Step::Close(index, out)),
        1 => prop_oneof![Just(0), 1_u32..200_000, 1_u32..86_400_000].prop_map(Step::Pause),
        6 => prop_oneof![0_u64..3_000, 0_u64..90_000, 0_u64..7_200_000, 0_u64..100_000_000].prop_map(Step::Forward),
        1 => prop_oneof![1_u64..5_000, 1_u64..4_000_000, 1_u64..200_000_000].prop_map(Step::Back),
        1 => (kind, 1_u32..15, 5_u32..100).prop_map(|(kind, minute, day)| Step::Configure(kind, minute, day)),
        1 => prop_oneof![Just(Override::Reset), wish.prop_map(Override::Set)].prop_map(Step::Override),
    ];
    prop::collection::vec(step, 1..80)
}

fn of_lane(limit: u32, lane: Lane) -> u32 {
    match lane {
        Lane::Normal => limit,
        Lane::Bulk => (limit * 80 / 100).max(1),
    }
}

/// The value without its turns.
fn counted(value: &[u8]) -> Vec<u8> {
    let mut copy = value.to_vec();
    if let Some(turns) = copy.get_mut(TURNS) {
        turns.fill(0);
    }
    copy
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_the_retry_time_differs_and_waiting_that_long_is_enough(
        steps in steps(), rolling in any::<bool>(), start in 1_700_000_000_000_u64..1_700_200_000_000,
    ) {
        let kind = if rolling { WindowKind::Rolling } else { WindowKind::Calendar };
        let mut paced = Config { per_minute: 6, per_day: 40, kind, pacing: true, bulk_share: 80 };
        let (mut now, mut with, mut without) = (start, Vec::new(), Vec::new());
        let (mut ids, mut overridden): (Vec<ReservationId>, Option<u32>) = (Vec::new(), None);
        for step in steps {
            let plain = Config { pacing: false, ..paced };
            match step {
                Step::Reserve { times, recipients, wish, lane } => for _ in 0..times {
                    let request = Request { recipients, wish, lane, lease_ms: 120_000 };
                    let answer = reserve(&mut with, &paced, &request, now).unwrap();
                    let other = reserve(&mut without, &plain, &request, now).unwrap();
                    prop_assert_eq!(
                        (answer.minute_left, answer.day_left, answer.lifetime, &answer.changes),
                        (other.minute_left, other.day_left, other.lifetime, &other.changes)
                    );
                    match (answer.verdict, other.verdict) {
                        (Verdict::Denied { reason, retry_after_ms }, Verdict::Denied { reason: same, retry_after_ms: opens_in }) => {
                            prop_assert_eq!(reason, same);
                            prop_assert!((opens_in..=90_000_000).contains(&retry_after_ms), "{} but {}", retry_after_ms, opens_in);
                            if overridden.is_some_and(|limit| recipients > of_lane(limit, lane)) {
                                // What the operator may change at any time is not waited for longer.
                                prop_assert_eq!((reason, retry_after_ms), (Reason::Day, OVERRIDE_WAIT_MS));
                                continue;
                            }
                            let later = reserve(&mut with.clone(), &paced, &request, now + retry_after_ms).unwrap();
                            prop_assert!(matches!(later.verdict, Verdict::Allowed(_)), "{:?}", later.verdict);
                        }
                        (same, other) => {
                            prop_assert_eq!(same, other);
                            if let Verdict::Allowed(id) = same {
                                ids.push(id);
                            }
                        }
                    }
                },
                Step::Close(index, out) if !ids.is_empty() => {
                    let id = ids[index.index(ids.len())];
                    let close = if out { commit } else { release };
                    prop_assert_eq!(close(&mut with, paced.kind, id, now), close(&mut without, paced.kind, id, now));
                }
                Step::Close(..) => {}
                Step::Pause(ms) => {
                    prop_assert_eq!(pause(&mut with, paced.kind, ms, now), pause(&mut without, paced.kind, ms, now));
                }
                Step::Forward(ms) => now += ms,
                Step::Back(ms) => now = now.saturating_sub(ms).max(start - 1_000_000_000),
                Step::Configure(kind, per_minute, per_day) => paced = Config { kind, per_minute, per_day, ..paced },
                Step::Override(wanted) => {
                    let done = override_limits(&mut with, paced.kind, wanted, now).unwrap();
                    prop_assert_eq!(&done, &override_limits(&mut without, paced.kind, wanted, now).unwrap());
                    overridden = done.limits.per_day;
                }
            }
            prop_assert_eq!(counted(&with), counted(&without));
        }
        prop_assert!(without.get(TURNS).is_none_or(|turns| turns.iter().all(|&byte| byte == 0)));
    }
}
