//! Each denial gets a retry time of its own, so that those who wait do not come back all at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use redis::Connection;
use test_support::{Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
/// The kinds, with what their minute and their day cover.
const KINDS: [(&str, u64, u64); 2] = [
    ("calendar", MINUTE_MS, 24 * HOUR_MS),
    ("rolling", 61_000, 24 * HOUR_MS + 300_000),
];

/// Sends until somebody is denied: for how long, and for what reason.
fn fill(redis: &mut Connection, arguments: &str) -> (String, u64) {
    loop {
        let answer = redis.reserve(KEY, arguments);
        if !answer.allowed {
            return (answer.reason, answer.retry_after_ms);
        }
    }
}

/// How long each of so many has to wait who are denied now.
fn waits(redis: &mut Connection, arguments: &str, count: usize) -> Vec<u64> {
    (0..count).map(|_| redis.denied(KEY, arguments).1).collect()
}

/// The waits of a queue that begins in `first_ms`, its turns `step_us` apart.
fn queue(first_ms: u64, step_us: u64, count: u64) -> Vec<u64> {
    (0..count)
        .map(|nth| first_ms + (nth * step_us).div_ceil(1_000))
        .collect()
}

#[test]
fn the_turns_of_a_full_minute_are_its_span_divided_by_the_limit_apart() {
    for (kind, span_ms, _) in KINDS {
        for limit in [1, 7, 25, 90] {
            let server = RedisServer::at_noon(["window", kind]);
            let mut redis = server.connection();
            redis.ask::<()>(&format!("CONFIG SET mailrl.per-minute {limit}"));
            for _ in 0..limit {
                redis.allowed(KEY, "1");
            }
            server.move_clock_ms(20_300);
            let opens_in = span_ms - 20_300;
            let step_us = span_ms * 1_000 / limit;
            assert_eq!(
                waits(&mut redis, "1", 120),
                queue(opens_in, step_us, 120),
                "{kind}, {limit}"
            );
        }
    }
}

#[test]
fn the_turns_of_a_full_day_are_so_far_apart_for_each_recipient() {
    for (kind, _, span_ms) in KINDS {
        let server = RedisServer::at_noon(["window", kind, "recipients-per-day", "1000"]);
        let mut redis = server.connection();
        redis.allowed(KEY, "1000");
        let opens_in = if kind == "calendar" { 12 * HOUR_MS } else { span_ms };
        let (mut last_us, mut first) = (opens_in * 1_000, true);
        for recipients in [4, 1, 2, 1, 7] {
            if !std::mem::take(&mut first) {
                last_us += span_ms * recipients;
            }
            let denied = redis.denied(KEY, &recipients.to_string());
            assert_eq!(
                denied,
                ("day".into(), last_us.div_ceil(1_000)),
                "{kind}, {recipients}"
            );
        }
    }
}

#[test]
fn a_turn_that_is_further_off_is_given_as_25_hours_which_is_enough() {
    for (kind, ..) in KINDS {
        for pause_ms in [0, 86_400_000] {
            let server = RedisServer::at_noon(["window", kind, "recipients-per-day", "10"]);
            let mut redis = server.connection();
            redis.allowed(KEY, "10");
            redis.pause(KEY, pause_ms);
            let waits = waits(&mut redis, "5", 2_000);
            assert!(waits.is_sorted());
            assert_eq!(*waits.last().expect("some"), 25 * HOUR_MS);
            server.move_clock_ms((25 * HOUR_MS).cast_signed());
            redis.allowed(KEY, "5");
        }
    }
}

#[test]
fn who_waits_exactly_as_long_as_told_is_allowed_if_nobody_else_comes() {
    for (kind, ..) in KINDS {
        let server = RedisServer::at_noon(["window", kind, "per-minute", "5", "recipients-per-day", "60"]);
        let mut redis = server.connection();
        let mut random = StdRng::seed_from_u64(25);
        let mut seen = std::collections::BTreeMap::<_, u32>::new();
        let mut ids = Vec::new();
        for _ in 0..3_000 {
            let bulk = ["", " BULK"].choose(&mut random).copied().unwrap_or_default();
            let arguments = format!("{}{bulk}", random.random_range(1..9));
            let answer = redis.reserve(KEY, &arguments);
            if answer.allowed {
                ids.push(answer.reservation);
            } else if random.random_bool(0.4) {
                server.move_clock_ms(answer.retry_after_ms.cast_signed());
                let after = redis.reserve(KEY, &arguments);
                assert!(after.allowed, "{kind}: {arguments} {answer:?}, then {after:?}");
                *seen.entry((answer.reason, bulk)).or_default() += 1;
            }
            match random.random_range(0..20) {
                0 => drop(redis.pause(KEY, *[0, 9_000, 300_000].choose(&mut random).expect("some"))),
                1..4 if !ids.is_empty() => {
                    let id = ids.swap_remove(random.random_range(0..ids.len()));
                    let close = if random.random_bool(0.5) {
                        Calls::release
                    } else {
                        Calls::commit
                    };
                    close(&mut redis, KEY, &id);
                }
                4..10 => server.move_clock_ms(random.random_range(0..4_000)),
                10 => server.move_clock_ms(random.random_range(0..1_000_000)),
                _ => {}
            }
        }
        assert!(
            seen.len() == 6 && seen.values().all(|&count| count > 10),
            "{kind}: {seen:?}"
        );
    }
}

#[test]
fn a_backlog_drains_at_the_limit_with_about_two_calls_a_mail() {
    for (kind, span_ms, _) in KINDS {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let mut due: BinaryHeap<_> = (0..500).map(|nth| Reverse((NOON_MS, nth))).collect();
        let mut calls = 0;
        while let Some(Reverse((at, nth))) = due.pop() {
            server.stop_clock_at_ms(at);
            calls += 1;
            let answer = redis.reserve(KEY, "1");
            if !answer.allowed {
                due.push(Reverse((at + answer.retry_after_ms, nth)));
            }
        }
        assert!(calls <= 1_050, "{kind}: {calls} calls");
        // 500 at 25 a window are 20 windows, the first of them at once.
        let took_ms = redis.now_ms() - NOON_MS;
        assert!(took_ms <= 21 * span_ms, "{kind}: {took_ms} ms");
        assert_eq!(redis.status(KEY).day.used, 500);
    }
}

#[test]
fn a_queue_takes_no_budget_and_who_comes_without_a_turn_is_not_asked_for_one() {
    for (kind, span_ms, _) in KINDS {
        let server = RedisServer::at_noon(["window", kind, "per-minute", "4"]);
        let mut redis = server.connection();
        fill(&mut redis, "1");
        let far = *waits(&mut redis, "1", 100).last().expect("some");
        assert!(far > 20 * span_ms);
        assert_eq!(redis.used(KEY), (4, 4));
        // Not one more than the limit before the window opens, and all of it from then on.
        server.move_clock_ms(span_ms.cast_signed() - 1);
        redis.denied(KEY, "1");
        server.move_clock_ms(1);
        assert_eq!(redis.used(KEY).0, 0);
        for left in [3, 2, 1, 0] {
            assert_eq!(redis.reserve(KEY, "1").minute_left, left);
        }
        redis.denied(KEY, "1");
        assert_eq!(redis.used(KEY), (4, 8));
    }
}

#[test]
fn a_campaign_that_was_called_off_pushes_no_later_mail_into_the_evening() {
    for (kind, span_ms, _) in KINDS {
        for sent_in_turn in [0, 20, 130] {
            let server = RedisServer::at_noon(["window", kind]);
            let mut redis = server.connection();
            let first = fill(&mut redis, "1").1;
            let mut turns = vec![first];
            turns.extend(waits(&mut redis, "1", 2_000));
            for turn in turns.iter().take(sent_in_turn) {
                server.stop_clock_at_ms(NOON_MS + turn);
                redis.reserve(KEY, "1");
            }
            // As long as it runs, who comes on top stands at its end.
            let (_, waits) = fill(&mut redis, "1");
            assert!(waits > HOUR_MS, "{kind}, {sent_in_turn}: {waits} ms");

            server.move_clock_ms(180_000);
            let (reason, waits) = fill(&mut redis, "1");
            assert_eq!(reason, "minute");
            assert!(waits <= 2 * span_ms, "{kind}, {sent_in_turn}: {waits} ms");
        }
    }
}

#[test]
fn those_who_are_paused_queue_up_from_the_end_of_the_pause() {
    for (kind, span_ms, _) in KINDS {
        for queued in [0, 1, 25] {
            let server = RedisServer::at_noon(["window", kind]);
            let mut redis = server.connection();
            redis.allowed(KEY, "1");
            if queued > 0 {
                fill(&mut redis, "1");
                waits(&mut redis, "1", queued - 1);
            }
            redis.pause(KEY, 600_000);
            // They come all through the pause.
            let mut turns = Vec::new();
            for nth in 0..50 {
                let (reason, wait) = redis.denied(KEY, "1");
                assert_eq!(reason, "paused");
                turns.push(nth * 11_000 + wait);
                server.move_clock_ms(11_000);
            }
            assert_eq!(turns, queue(600_000, span_ms * 40, 50), "{kind}, {queued}");
        }
    }
}

#[test]
fn a_pause_that_is_ended_early_leaves_no_queue_at_its_end() {
    for (kind, span_ms, _) in KINDS {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        redis.pause(KEY, 6 * HOUR_MS);
        assert!(waits(&mut redis, "1", 30).iter().all(|&wait| wait >= 6 * HOUR_MS));
        redis.pause(KEY, 0);
        assert_eq!(fill(&mut redis, "1"), ("minute".into(), span_ms), "{kind}");
    }
}

#[test]
fn pacing_is_switched_on_and_off_at_run_time() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    fill(&mut redis, "1");
    assert_eq!(waits(&mut redis, "1", 2), [62_400, 64_800]);
    redis.ask::<()>("CONFIG SET mailrl.pacing no");
    assert_eq!(waits(&mut redis, "1", 3), [60_000; 3]);
    server.move_clock_ms(1_000);
    assert_eq!(waits(&mut redis, "1", 3), [59_000; 3]);
    // Those who hold turns still do.
    redis.ask::<()>("CONFIG SET mailrl.pacing yes");
    assert_eq!(waits(&mut redis, "1", 2), [66_200, 68_600]);
}

#[test]
fn without_pacing_all_wait_for_the_window_to_open() {
    for (kind, span_ms, _) in KINDS {
        let server = RedisServer::at_noon(["pacing", "no", "window", kind]);
        let mut redis = server.connection();
        fill(&mut redis, "1");
        assert_eq!(waits(&mut redis, "1", 50), [span_ms; 50], "{kind}");
        redis.pause(KEY, 600_000);
        assert_eq!(waits(&mut redis, "1", 50), [600_000; 50], "{kind}");
    }
}
