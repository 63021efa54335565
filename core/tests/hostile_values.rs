//! Whatever bytes stand in the key: an error or an answer, never a panic, and what is not ours is
//! left as it is.

use mailrl_core::{
    BadState, Config, Lane, Override, Request, ReservationId, SHORTEST_VALUE, Verdict, WindowKind, Wish,
    commit, override_limits, pause, release, reserve, status,
};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_000_000;

fn request(recipients: u32) -> Request {
    let wish = Wish {
        concurrent: Some(3),
        ..Wish::default()
    };
    Request {
        recipients,
        wish,
        lane: Lane::Normal,
        lease_ms: 120_000,
    }
}

fn real_value(kind: WindowKind, reservations: u64) -> Vec<u8> {
    let mut value = Vec::new();
    let config = Config {
        kind,
        per_minute: 1_000,
        ..Config::default()
    };
    for after in 0..reservations {
        let request = Request {
            wish: Wish::default(),
            ..request(2)
        };
        let _ = reserve(&mut value, &config, &request, NOW + after * 700).unwrap();
    }
    value
}

/// Every call on a value; those that refuse it must leave it alone.
fn call_everything(value: &[u8], config: &Config, now: u64) {
    let id = ReservationId { ms: NOW, seq: 0 };
    let unchanged = |refused: bool, after: &[u8]| assert!(!refused || after == value);
    let mut copy = value.to_vec();
    unchanged(reserve(&mut copy, config, &request(1), now).is_err(), &copy);
    unchanged(
        reserve(&mut copy.clone(), config, &request(u32::MAX), now).is_err(),
        &copy,
    );
    let mut copy = value.to_vec();
    unchanged(release(&mut copy, config.kind, id, now).is_err(), &copy);
    let mut copy = value.to_vec();
    unchanged(commit(&mut copy, config.kind, id, now).is_err(), &copy);
    let mut copy = value.to_vec();
    unchanged(pause(&mut copy, config.kind, 1_000, now).is_err(), &copy);
    for wanted in [Override::Reset, Override::Set(request(1).wish)] {
        let mut copy = value.to_vec();
        unchanged(
            override_limits(&mut copy, config.kind, wanted, now).is_err(),
            &copy,
        );
    }
    let _ = status(value, config, now);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 12 } else { 2_000 }, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused_or_answered(bytes in prop::collection::vec(any::<u8>(), 1..4_000), now in any::<u64>()) {
        call_everything(&bytes, &Config::default(), now);
    }

    #[test]
    fn a_damaged_value_is_refused_or_answered(
        rolling in any::<bool>(),
        other_kind in any::<bool>(),
        reservations in 1_u64..40,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24),
        now in prop_oneof![Just(NOW), any::<u64>(), NOW - 100_000..NOW + 100_000_000],
    ) {
        let kind = |rolling| if rolling { WindowKind::Rolling } else { WindowKind::Calendar };
        let mut value = real_value(kind(rolling), reservations);
        for (place, byte) in damage {
            let place = place.index(value.len());
            value[place] = byte;
        }
        let config = Config { kind: kind(rolling ^ other_kind), ..Config::default() };
        call_everything(&value, &config, now);
    }
}

#[test]
fn a_value_of_another_length_is_refused() {
    let value = real_value(WindowKind::Rolling, 3);
    for len in (1..value.len()).chain([value.len() + 1, value.len() + 32]) {
        let mut other = value.clone();
        other.resize(len, 0);
        let refused = reserve(&mut other, &Config::default(), &request(1), NOW).unwrap_err();
        assert_eq!(refused, BadState::Length, "{len} bytes");
    }
}

#[test]
fn a_foreign_string_and_a_later_layout_are_told_apart() {
    let mut foreign = vec![b'x'; SHORTEST_VALUE];
    assert_eq!(
        reserve(&mut foreign, &Config::default(), &request(1), NOW).unwrap_err(),
        BadState::Foreign
    );
    let mut later = real_value(WindowKind::Calendar, 1);
    later[3] = 2;
    assert_eq!(
        reserve(&mut later, &Config::default(), &request(1), NOW).unwrap_err(),
        BadState::Version(2)
    );
}

#[test]
fn a_pause_beyond_the_longest_one_ends_all_the_same() {
    let mut value = real_value(WindowKind::Calendar, 1);
    value[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    let paused = status(&value, &Config::default(), NOW).unwrap().paused_for_ms;
    assert_eq!(paused, 86_400_000);
    let denied = reserve(&mut value, &Config::default(), &request(1), NOW)
        .unwrap()
        .verdict;
    assert_eq!(
        denied,
        Verdict::Denied {
            reason: mailrl_core::Reason::Paused,
            retry_after_ms: 86_400_000
        }
    );
    let later = reserve(&mut value, &Config::default(), &request(1), NOW + 86_400_000)
        .unwrap()
        .verdict;
    assert!(matches!(later, Verdict::Allowed(_)));
}

#[test]
fn the_largest_numbers_overflow_nothing() {
    let most = Config {
        per_minute: u32::MAX,
        per_day: u32::MAX,
        kind: WindowKind::Rolling,
        pacing: false,
        bulk_share: 80,
    };
    for now in [0, 1, NOW, u64::MAX] {
        let mut value = Vec::new();
        let first = reserve(&mut value, &most, &request(u32::MAX), now).unwrap();
        assert!(matches!(first.verdict, Verdict::Allowed(_)));
        assert_eq!((first.minute_left, first.day_left), (u32::MAX - 1, 0));
        let second = reserve(&mut value, &most, &request(1), now).unwrap();
        assert!(
            matches!(second.verdict, Verdict::Denied { .. }),
            "at {now}: {:?}",
            second.verdict
        );
    }
}

/// Where a rolling value keeps the sum of its older slots: the minute's, the day's.
const SUMS_OF_OLDER: [usize; 2] = [1_576 + 8, 1_576 + 20];

fn with_sum_of_older(at: usize, sum: u32) -> Vec<u8> {
    let mut value = real_value(WindowKind::Rolling, 40);
    value[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    value
}

#[test]
fn a_message_that_is_counted_frees_no_budget_where_the_sum_is_too_small() {
    let config = Config {
        kind: WindowKind::Rolling,
        per_minute: 1_000,
        ..Config::default()
    };
    // The first slots have left, the newest one enters the ring.
    for (at, later) in SUMS_OF_OLDER.into_iter().zip([70_000, 86_410_000]) {
        for sum in [0, 1, 7] {
            let mut value = with_sum_of_older(at, sum);
            let before = status(&value, &config, NOW + later).unwrap();
            let wish = Wish::default();
            let answer = reserve(&mut value, &config, &Request { wish, ..request(1) }, NOW + later).unwrap();
            assert!(matches!(answer.verdict, Verdict::Allowed(_)));
            let after = status(&value, &config, NOW + later).unwrap();
            assert_eq!(after.minute.used, before.minute.used + 1, "{sum}");
            assert_eq!(after.day.used, before.day.used + 1, "{sum}");
        }
    }
}

#[test]
fn a_sum_that_is_too_large_goes_with_the_last_slot() {
    let config = Config {
        kind: WindowKind::Rolling,
        ..Config::default()
    };
    for at in SUMS_OF_OLDER {
        let mut value = with_sum_of_older(at, 1_000_000);
        let denied = reserve(&mut value, &config, &request(1), NOW + 30_000).unwrap();
        assert!(matches!(denied.verdict, Verdict::Denied { .. }));
        let a_day_later = NOW + 30_000 + 25 * 3_600_000;
        let allowed = reserve(&mut value, &config, &request(1), a_day_later).unwrap();
        assert!(matches!(allowed.verdict, Verdict::Allowed(_)));
        assert_eq!((allowed.minute_left, allowed.day_left), (24, 8_999));
        let here = status(&value, &config, a_day_later).unwrap();
        assert_eq!((here.minute.used, here.day.used), (1, 1));
    }
}
