//! Random calls to the decision and to a naive model: the same answers, whatever the clock, the
//! limits and the window kind do in between.

mod model;

use mailrl_core::{Lane, Override, WindowKind, Wish};
use model::{Step, play};
use proptest::prelude::*;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small_limit = || prop::option::weighted(0.3, 1_u32..12);
    let step = prop_oneof![
        10 => (1_u32..8, small_limit(), prop::option::weighted(0.3, 4_u32..60), prop::option::weighted(0.4, 1_u32..6),
               prop_oneof![2 => Just(Lane::Normal), 1 => Just(Lane::Bulk)], prop_oneof![3 => Just(120_000), 1 => 1_u32..400_000])
            .prop_map(|(recipients, per_minute, per_day, concurrent, lane, lease_ms)| Step::Reserve {
                recipients, per_minute, per_day, concurrent, lane, lease_ms
            }),
        1 => (1_u16..40, 1_u32..400_000).prop_map(|(count, lease_ms)| Step::Burst(count, lease_ms)),
        3 => any::<usize>().prop_map(Step::Release),
        3 => any::<usize>().prop_map(Step::Commit),
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

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 6 } else { 1_500 }, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_the_models(steps in steps(), rolling in any::<bool>(), start in 1_700_000_000_000_u64..1_700_200_000_000) {
        let kind = if rolling { WindowKind::Rolling } else { WindowKind::Calendar };
        play(kind, start, steps);
    }
}
