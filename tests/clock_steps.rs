//! The server's clock steps, back or forth: as when somebody sets it, or a machine's time was never right.

use test_support::{Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

#[test]
fn a_clock_that_steps_back_frees_no_budget() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind, "per-minute", "5", "recipients-per-day", "50"]);
        let mut redis = server.connection();
        for _ in 0..5 {
            redis.allowed(KEY, "10");
        }
        for step_ms in [1, 999, MINUTE_MS, HOUR_MS, 11 * HOUR_MS, DAY_MS, 3 * DAY_MS] {
            server.move_clock_ms(-step_ms.cast_signed());
            assert_eq!(redis.used(KEY), (5, 50), "{kind}: {step_ms} ms");
            assert_eq!(redis.denied(KEY, "1").0, "day");
        }
    }
}

#[test]
fn a_clock_that_steps_back_blocks_no_mailbox_for_longer_than_its_window() {
    for (kind, minute_ms, day_ms) in [
        ("calendar", MINUTE_MS, DAY_MS),
        ("rolling", 61_000, DAY_MS + 300_000),
    ] {
        let server = RedisServer::at_noon([
            "pacing",
            "no",
            "window",
            kind,
            "per-minute",
            "5",
            "recipients-per-day",
            "50",
        ]);
        let mut redis = server.connection();
        for _ in 0..5 {
            redis.allowed(KEY, "1");
        }
        server.move_clock_ms(-HOUR_MS.cast_signed());
        let (reason, waited) = server.waits_exactly(&mut redis, KEY, "1");
        assert!(reason == "minute" && waited <= minute_ms, "{kind}: {waited}");

        redis.allowed(KEY, "44");
        server.move_clock_ms(-5 * HOUR_MS.cast_signed());
        let (reason, waited) = server.waits_exactly(&mut redis, KEY, "10");
        assert!(reason == "day" && waited <= day_ms, "{kind}: {waited}");
    }
}

#[test]
fn a_clock_that_steps_back_makes_no_pause_and_no_lease_longer() {
    let server = RedisServer::at_noon(["pacing", "no"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    redis.pause(KEY, 30_000);
    server.move_clock_ms(-HOUR_MS.cast_signed());
    assert_eq!(redis.status(KEY).paused_for_ms, 30_000);
    assert_eq!(
        server.waits_exactly(&mut redis, KEY, "1 CONCURRENT 2"),
        ("paused".into(), 30_000)
    );
    assert_eq!(redis.denied(KEY, "1 CONCURRENT 2").0, "concurrent");
    server.move_clock_ms(90_000);
    redis.allowed(KEY, "1 CONCURRENT 2");
    assert_eq!(redis.status(KEY).open, 2);
}

#[test]
fn a_reservation_made_before_the_clock_stepped_back_can_be_released() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let id = redis.allowed(KEY, "7");
        server.move_clock_ms(-HOUR_MS.cast_signed());
        redis.allowed(KEY, "1");
        assert!(redis.release(KEY, &id));
        assert_eq!(redis.used(KEY), (1, 1), "{kind}");
        assert!(!redis.release(KEY, &id));
    }
}

#[test]
fn the_expiry_follows_a_clock_that_stepped_back() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    server.move_clock_ms(-10 * HOUR_MS.cast_signed());
    redis.allowed(KEY, "1");
    let expires_at = redis.snapshot(KEY.as_bytes()).expires_at.cast_unsigned();
    assert_eq!(expires_at, NOON_MS + 16 * HOUR_MS);
}

#[test]
fn a_clock_that_steps_an_hour_forth_opens_the_minute_and_keeps_the_day() {
    for (kind, day_ms) in [("calendar", 12 * HOUR_MS), ("rolling", DAY_MS + 300_000)] {
        let arguments = [
            "pacing",
            "no",
            "window",
            kind,
            "per-minute",
            "5",
            "recipients-per-day",
            "50",
        ];
        let server = RedisServer::at_noon(arguments);
        let mut redis = server.connection();
        for _ in 0..5 {
            redis.allowed(KEY, "10");
        }
        server.move_clock_ms(HOUR_MS.cast_signed());
        assert_eq!(redis.used(KEY), (0, 50), "{kind}");
        let waited = server.waits_exactly(&mut redis, KEY, "1");
        assert_eq!(waited, ("day".into(), day_ms - HOUR_MS), "{kind}");
    }
}

#[test]
fn a_clock_that_steps_an_hour_forth_and_back_again_forgets_no_mail_of_the_day() {
    for (kind, minute_ms, day_ms) in [
        ("calendar", MINUTE_MS, DAY_MS),
        ("rolling", 61_000, DAY_MS + 300_000),
    ] {
        let arguments = [
            "pacing",
            "no",
            "window",
            kind,
            "per-minute",
            "5",
            "recipients-per-day",
            "60",
        ];
        let server = RedisServer::at_noon(arguments);
        let mut redis = server.connection();
        for _ in 0..4 {
            redis.allowed(KEY, "10");
        }
        server.move_clock_ms(HOUR_MS.cast_signed());
        let id = redis.allowed(KEY, "10");
        redis.allowed(KEY, "9");
        server.move_clock_ms(-HOUR_MS.cast_signed());
        assert_eq!(redis.used(KEY), (2, 59), "{kind}");
        assert!(redis.release(KEY, &id), "{kind}");
        assert_eq!(redis.used(KEY), (1, 49), "{kind}");

        let (reason, waited) = server.waits_exactly(&mut redis, KEY, "1 PERMINUTE 1");
        assert!(reason == "minute" && waited <= minute_ms, "{kind}: {waited}");
        let (reason, waited) = server.waits_exactly(&mut redis, KEY, "11");
        assert!(reason == "day" && waited <= day_ms, "{kind}: {waited}");
    }
}
