//! A queue of turns while limits and the window kind change around it, and while its key is copied.

use redis::Connection;
use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

fn waits(redis: &mut Connection, arguments: &str, count: usize) -> Vec<u64> {
    (0..count).map(|_| redis.denied(KEY, arguments).1).collect()
}

#[test]
fn a_lowered_limit_makes_the_steps_longer_from_the_next_turn_on() {
    let server = RedisServer::at_noon(["per-minute", "10"]);
    let mut redis = server.connection();
    for _ in 0..10 {
        redis.allowed(KEY, "1");
    }
    assert_eq!(waits(&mut redis, "1", 3), [60_000, 66_000, 72_000]);
    redis.ask::<()>("CONFIG SET mailrl.per-minute 5");
    assert_eq!(waits(&mut redis, "1", 2), [84_000, 96_000]);
    redis.limits(KEY, "PERMINUTE 3");
    assert_eq!(waits(&mut redis, "1", 2), [116_000, 136_000]);
    assert_eq!(waits(&mut redis, "1 PERMINUTE 10", 1), [156_000]);
}

#[test]
fn a_raised_limit_lets_all_through_and_shortens_the_steps() {
    let server = RedisServer::at_noon(["per-minute", "10"]);
    let mut redis = server.connection();
    for _ in 0..10 {
        redis.allowed(KEY, "1");
    }
    assert_eq!(waits(&mut redis, "1", 3), [60_000, 66_000, 72_000]);
    redis.ask::<()>("CONFIG SET mailrl.per-minute 20");
    for _ in 0..10 {
        redis.allowed(KEY, "1");
    }
    assert_eq!(waits(&mut redis, "1", 3), [75_000, 78_000, 81_000]);
}

#[test]
fn a_window_kind_switched_in_mid_queue_leaves_a_queue_that_ends() {
    for (from, to, span_ms) in [("calendar", "rolling", 61_000), ("rolling", "calendar", 60_000)] {
        let server = RedisServer::at_noon(["window", from, "per-minute", "10"]);
        let mut redis = server.connection();
        for _ in 0..10 {
            redis.allowed(KEY, "1");
        }
        let last = *waits(&mut redis, "1", 101).last().expect("some");
        server.move_clock_ms(10_000);
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {to}"));
        // It goes on with the steps of the new kind.
        let step_ms = span_ms / 10;
        let next = last - 10_000 + step_ms;
        assert_eq!(
            waits(&mut redis, "1", 3),
            [next, next + step_ms, next + 2 * step_ms],
            "{to}"
        );
        assert_eq!(redis.used(KEY), (10, 10));
        // Nobody comes: it is forgotten.
        server.move_clock_ms(240_000);
        for _ in 0..10 {
            redis.allowed(KEY, "1");
        }
        let (_, wait) = redis.denied(KEY, "1");
        assert!(wait <= span_ms, "{to}: {wait}");
    }
}

#[test]
fn who_waits_as_told_after_a_change_is_allowed() {
    for change in [
        "CONFIG SET mailrl.window rolling",
        "CONFIG SET mailrl.window calendar",
        "CONFIG SET mailrl.per-minute 2",
        "CONFIG SET mailrl.per-minute 6",
        "MAILRL.LIMITS mailrl:orders@example.com PERMINUTE 1",
    ] {
        for from in ["calendar", "rolling"] {
            let server = RedisServer::at_noon(["window", from, "per-minute", "5"]);
            let mut redis = server.connection();
            for _ in 0..5 {
                redis.allowed(KEY, "1");
                server.move_clock_ms(1_000);
            }
            waits(&mut redis, "1", 40);
            server.move_clock_ms(3_000);
            redis.ask::<redis::Value>(change);
            let answer = redis.reserve(KEY, "1");
            if !answer.allowed {
                server.move_clock_ms(answer.retry_after_ms.cast_signed());
                redis.allowed(KEY, "1");
            }
        }
    }
}

#[test]
fn a_clock_that_steps_back_takes_the_queue_along() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind, "per-minute", "5"]);
        let mut redis = server.connection();
        for _ in 0..5 {
            redis.allowed(KEY, "1");
        }
        let last = *waits(&mut redis, "1", 60).last().expect("some");
        server.move_clock_ms(-3_600_000);
        let (_, wait) = redis.denied(KEY, "1");
        // The value was last written at noon: the step is measured from there.
        assert!(wait.abs_diff(last) <= 30_000, "{kind}: {wait}, not about {last}");
    }
}
