//! Random calls to the decision and to a naive model: the same answers, whatever the clock, the
//! limits and the window kind do in between.

mod model;

use mailrl_core::{
    Changes, Config, Lane, Override, Request, ReservationId, Verdict, WindowKind, Wish, commit,
    override_limits, pause, release, reserve, status,
};
use model::{Expected, Model};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Reserve {
        recipients: u32,
        per_minute: Option<u32>,
        per_day: Option<u32>,
        concurrent: Option<u32>,
        lane: Lane,
        lease_ms: u32,
    },
    Release(prop::sample::Index),
    Commit(prop::sample::Index),
    Pause(u32),
    Forward(u64),
    Back(u64),
    Switch(WindowKind),
    Limits(u32, u32),
    Override(Override),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small_limit = || prop::option::weighted(0.3, 1_u32..12);
    let step = prop_oneof![
        10 => (1_u32..8, small_limit(), prop::option::weighted(0.3, 4_u32..60), prop::option::weighted(0.4, 1_u32..6),
               prop_oneof![2 => Just(Lane::Normal), 1 => Just(Lane::Bulk)], prop_oneof![3 => Just(120_000), 1 => 1_u32..400_000])
            .prop_map(|(recipients, per_minute, per_day, concurrent, lane, lease_ms)| Step::Reserve {
                recipients, per_minute, per_day, concurrent, lane, lease_ms
            }),
        3 => any::<prop::sample::Index>().prop_map(Step::Release),
        3 => any::<prop::sample::Index>().prop_map(Step::Commit),
        1 => prop_oneof![Just(0), 1_u32..200_000].prop_map(Step::Pause),
        6 => prop_oneof![0_u64..3_000, 0_u64..90_000, 0_u64..7_200_000, 0_u64..100_000_000].prop_map(Step::Forward),
        1 => prop_oneof![1_u64..5_000, 1_u64..4_000_000, 1_u64..200_000_000].prop_map(Step::Back),
        1 => prop_oneof![Just(WindowKind::Calendar), Just(WindowKind::Rolling)].prop_map(Step::Switch),
        1 => (1_u32..15, 5_u32..100).prop_map(|(minute, day)| Step::Limits(minute, day)),
        1 => prop_oneof![
            1 => Just(Override::Reset),
            3 => (small_limit(), prop::option::weighted(0.3, 4_u32..60), prop::option::weighted(0.3, 1_u32..6))
                .prop_map(|(per_minute, per_day, concurrent)| Override::Set(Wish { per_minute, per_day, concurrent })),
        ].prop_map(Step::Override),
    ];
    prop::collection::vec(step, 1..160)
}

/// Applies what a call says it changed to a copy, as a replica would; then both must be the same.
fn replicate(replica: &mut Vec<u8>, value: &[u8], changes: &Changes) {
    match changes {
        Changes::Whole => value.clone_into(replica),
        Changes::Ranges(ranges) => {
            for range in ranges.iter() {
                replica.resize(replica.len().max(range.end), 0);
                replica[range.clone()].copy_from_slice(&value[range]);
            }
        }
    }
    assert!(replica == value, "the call changed more than it said");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_the_models(steps in steps(), rolling in any::<bool>(), start in 1_700_000_000_000_u64..1_700_200_000_000) {
        let mut now = start;
        let kind = if rolling { WindowKind::Rolling } else { WindowKind::Calendar };
        let mut config = Config { per_minute: 6, per_day: 40, kind, pacing: false, bulk_share: 80 };
        let mut model = Model::new(config.kind);
        let (mut value, mut replica) = (Vec::new(), Vec::new());
        let mut ids: Vec<ReservationId> = Vec::new();
        for step in steps {
            let before = value.clone();
            match step {
                Step::Reserve { recipients, per_minute, per_day, concurrent, lane, lease_ms } => {
                    let request = Request { recipients, wish: Wish { per_minute, per_day, concurrent }, lane, lease_ms };
                    let answer = reserve(&mut value, &config, &request, now).unwrap();
                    let expected = model.reserve(&config, &request, now);
                    prop_assert_eq!(
                        &Expected { verdict: answer.verdict, minute_left: answer.minute_left, day_left: answer.day_left },
                        &expected
                    );
                    if let Verdict::Allowed(id) = answer.verdict {
                        ids.push(id);
                        replicate(&mut replica, &value, &answer.changes);
                    }
                }
                Step::Release(index) if !ids.is_empty() => {
                    let id = ids[index.index(ids.len())];
                    let changes = release(&mut value, config.kind, id, now).unwrap();
                    prop_assert_eq!(changes.is_some(), model.release(config.kind, (id.ms, id.seq), now));
                    if let Some(changes) = changes {
                        replicate(&mut replica, &value, &changes);
                    }
                }
                Step::Commit(index) if !ids.is_empty() => {
                    let id = ids[index.index(ids.len())];
                    let changes = commit(&mut value, config.kind, id, now).unwrap();
                    prop_assert_eq!(changes.is_some(), model.commit(config.kind, (id.ms, id.seq), now));
                    if let Some(changes) = changes {
                        replicate(&mut replica, &value, &changes);
                    }
                }
                // Their model needs a mailbox that has a value.
                Step::Pause(ms) if !ids.is_empty() => {
                    let paused = pause(&mut value, config.kind, ms, now).unwrap();
                    model.pause(config.kind, ms, now);
                    if let Some(changes) = paused.changes {
                        replicate(&mut replica, &value, &changes);
                    }
                }
                Step::Release(_) | Step::Commit(_) | Step::Pause(_) => {}
                Step::Override(wanted) => {
                    let overridden = override_limits(&mut value, config.kind, wanted, now).unwrap();
                    prop_assert_eq!(overridden.limits, model.override_limits(config.kind, wanted, now));
                    if let Some(changes) = overridden.changes {
                        replicate(&mut replica, &value, &changes);
                    }
                }
                Step::Forward(ms) => now += ms,
                Step::Back(ms) => now = now.saturating_sub(ms).max(start - 1_000_000_000),
                Step::Switch(kind) => config.kind = kind,
                Step::Limits(per_minute, per_day) => (config.per_minute, config.per_day) = (per_minute, per_day),
            }
            // The model takes a step of the clock or of the window kind with the next call only.
            if value == before {
                continue;
            }
            let here = status(&value, &config, now).unwrap();
            prop_assert_eq!(u64::from(here.minute.used), model.minute_used(now));
            prop_assert_eq!(u64::from(here.day.used), model.day_used(now));
            prop_assert_eq!(here.open, model.open(now));
            prop_assert_eq!(here.paused_for_ms, model.paused_for(now));
            prop_assert_eq!(here.overrides, model.overrides());
        }
    }
}
