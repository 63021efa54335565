//! Who is denied and waits exactly as long as told is allowed, and not a millisecond earlier.

use mailrl_core::{Config, Lane, Reason, Request, Verdict, WindowKind, Wish, pause, reserve};
use proptest::prelude::*;

const DAY_MS: u64 = 86_400_000;
const MIDNIGHT: u64 = 19_700 * DAY_MS;

fn ask(value: &mut Vec<u8>, config: &Config, recipients: u32, now: u64) -> Verdict {
    let request = Request {
        recipients,
        wish: Wish::default(),
        lane: Lane::Normal,
        lease_ms: 1_000,
    };
    reserve(value, config, &request, now).unwrap().verdict
}

fn denied(verdict: Verdict) -> (Reason, u64) {
    match verdict {
        Verdict::Denied {
            reason,
            retry_after_ms,
        } => (reason, retry_after_ms),
        other => panic!("denied was expected, not {other:?}"),
    }
}

#[test]
fn a_full_calendar_minute_opens_with_the_next_one() {
    let config = Config {
        per_minute: 2,
        per_day: 100,
        kind: WindowKind::Calendar,
        pacing: false,
        bulk_share: 80,
    };
    let mut value = Vec::new();
    for _ in 0..2 {
        assert!(matches!(
            ask(&mut value, &config, 1, MIDNIGHT + 10_250),
            Verdict::Allowed(_)
        ));
    }
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT + 10_250)),
        (Reason::Minute, 49_750)
    );
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT + 59_999)),
        (Reason::Minute, 1)
    );
    assert!(matches!(
        ask(&mut value, &config, 1, MIDNIGHT + 60_000),
        Verdict::Allowed(_)
    ));
}

#[test]
fn a_full_calendar_day_opens_at_midnight_utc_of_a_leap_years_last_day_too() {
    // 2024-12-31 23:59:59.000 UTC
    let now = 1_735_689_599_000;
    let config = Config {
        per_minute: 10,
        per_day: 5,
        kind: WindowKind::Calendar,
        pacing: false,
        bulk_share: 80,
    };
    let mut value = Vec::new();
    assert!(matches!(ask(&mut value, &config, 5, now), Verdict::Allowed(_)));
    assert_eq!(denied(ask(&mut value, &config, 1, now)), (Reason::Day, 1_000));
    assert!(matches!(
        ask(&mut value, &config, 5, now + 1_000),
        Verdict::Allowed(_)
    ));
}

#[test]
fn a_rolling_minute_opens_when_enough_of_its_oldest_slots_have_left() {
    let config = Config {
        per_minute: 3,
        per_day: 100,
        kind: WindowKind::Rolling,
        pacing: false,
        bulk_share: 80,
    };
    let mut value = Vec::new();
    for after in [0, 10_400, 20_900] {
        assert!(matches!(
            ask(&mut value, &config, 1, MIDNIGHT + after),
            Verdict::Allowed(_)
        ));
    }
    // The slot of second 0 is covered for 61 s.
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT + 30_000)),
        (Reason::Minute, 31_000)
    );
    assert!(matches!(
        ask(&mut value, &config, 1, MIDNIGHT + 61_000),
        Verdict::Allowed(_)
    ));
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT + 61_000)),
        (Reason::Minute, 10_000)
    );
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT + 70_999)),
        (Reason::Minute, 1)
    );
    assert!(matches!(
        ask(&mut value, &config, 1, MIDNIGHT + 71_000),
        Verdict::Allowed(_)
    ));
}

#[test]
fn a_rolling_day_waits_for_as_many_slots_as_the_recipients_need() {
    let config = Config {
        per_minute: 100,
        per_day: 10,
        kind: WindowKind::Rolling,
        pacing: false,
        bulk_share: 80,
    };
    let mut value = Vec::new();
    for hour in 0..5_u64 {
        assert!(matches!(
            ask(&mut value, &config, 2, MIDNIGHT + hour * 3_600_000),
            Verdict::Allowed(_)
        ));
    }
    let now = MIDNIGHT + 5 * 3_600_000;
    let slots_ms = 289 * 300_000;
    assert_eq!(
        denied(ask(&mut value, &config, 1, now)),
        (Reason::Day, MIDNIGHT + slots_ms - now)
    );
    let third = MIDNIGHT + 2 * 3_600_000 + slots_ms - now;
    assert_eq!(denied(ask(&mut value, &config, 6, now)), (Reason::Day, third));
}

#[test]
fn the_reason_is_the_one_that_keeps_waiting_longest() {
    let config = Config {
        per_minute: 1,
        per_day: 1,
        kind: WindowKind::Calendar,
        pacing: false,
        bulk_share: 80,
    };
    let mut value = Vec::new();
    assert!(matches!(
        ask(&mut value, &config, 1, MIDNIGHT),
        Verdict::Allowed(_)
    ));
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT)),
        (Reason::Day, DAY_MS)
    );

    let config = Config {
        per_day: 100,
        ..config
    };
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT)),
        (Reason::Minute, 60_000)
    );
    pause(&mut value, config.kind, 59_000, MIDNIGHT).unwrap();
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT)),
        (Reason::Minute, 60_000)
    );
    pause(&mut value, config.kind, 61_000, MIDNIGHT).unwrap();
    assert_eq!(
        denied(ask(&mut value, &config, 1, MIDNIGHT)),
        (Reason::Paused, 61_000)
    );
}

proptest! {
    #[test]
    fn waiting_exactly_is_enough_and_needed(
        gaps in prop::collection::vec((0_u64..40_000, 1_u32..5), 1..60),
        rolling in any::<bool>(),
        start in MIDNIGHT..MIDNIGHT + DAY_MS,
    ) {
        let kind = if rolling { WindowKind::Rolling } else { WindowKind::Calendar };
        let config = Config { per_minute: 4, per_day: 60, kind, pacing: false, bulk_share: 80 };
        let (mut value, mut now) = (Vec::new(), start);
        for (gap, recipients) in gaps {
            now += gap;
            if let Verdict::Denied { reason, retry_after_ms } = ask(&mut value, &config, recipients, now) {
                let early = ask(&mut value.clone(), &config, recipients, now + retry_after_ms - 1);
                prop_assert_eq!(early, Verdict::Denied { reason, retry_after_ms: 1 });
                now += retry_after_ms;
                let verdict = ask(&mut value, &config, recipients, now);
                prop_assert!(matches!(verdict, Verdict::Allowed(_)), "{:?} after waiting for {:?}", verdict, reason);
            }
        }
    }
}
