//! Midnight, the days of a leap year, and a host whose zone changes to summer time and back: all that
//! counts is UTC.

use std::thread;
use std::time::{Duration, Instant};

use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

/// The rule of Europe/Amsterdam, which is the same in all the years here.
const AMSTERDAM: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

/// The midnights (UTC, ms since 1970) at which these days begin.
const MIDNIGHTS: [(&str, u64); 7] = [
    ("2027-06-16", 1_813_104_000_000),
    ("2028-01-01", 1_830_297_600_000),
    ("2028-02-29", 1_835_395_200_000),
    ("2028-03-01", 1_835_481_600_000),
    ("2029-01-01", 1_861_920_000_000),
    // 2100 has no 29 February, 2000 had one.
    ("2100-03-01", 4_107_542_400_000),
    ("2000-02-29", 951_782_400_000),
];

fn server_at(now_ms: u64, kind: &str, zone: &str) -> RedisServer {
    let arguments = ["pacing", "no", "window", kind, "recipients-per-day", "100"];
    let builder = RedisServer::builder().module(arguments);
    let server = builder.time_zone(zone).with_clock().start();
    server.stop_clock_at_ms(now_ms);
    server
}

#[test]
fn two_seconds_around_midnight_begin_a_new_calendar_day_and_free_nothing_of_a_rolling_one() {
    for kind in ["calendar", "rolling"] {
        for (date, midnight) in MIDNIGHTS {
            let server = server_at(midnight - 1_000, kind, "UTC");
            let mut redis = server.connection();
            for _ in 0..25 {
                redis.allowed(KEY, "4");
            }
            let full = redis.denied(KEY, "1");
            server.move_clock_ms(2_000);
            if kind == "calendar" {
                assert!(full.1 == 1_000, "{date}: {full:?}");
                assert_eq!(redis.used(KEY), (0, 0), "{date}");
                redis.allowed(KEY, "100");
            } else {
                assert_eq!(redis.used(KEY), (25, 100), "{date}");
                let still_full = redis.denied(KEY, "1");
                assert_eq!(still_full, (full.0, full.1 - 2_000), "{date}");
            }
        }
    }
}

#[test]
fn each_day_of_a_leap_year_is_as_long_as_any_other() {
    for (kind, whole_day) in [("calendar", DAY_MS), ("rolling", DAY_MS + 300_000)] {
        for (date, midnight) in MIDNIGHTS {
            let server = server_at(midnight - DAY_MS, kind, "UTC");
            let mut redis = server.connection();
            for _ in 0..3 {
                redis.allowed(KEY, "99");
                let waited = server.waits_exactly(&mut redis, KEY, "2");
                assert_eq!(waited, ("day".into(), whole_day), "{kind}, {date}");
                // To the beginning of the next day, of which nothing is used.
                server.move_clock_ms((2 * DAY_MS).cast_signed());
                assert_eq!(redis.used(KEY), (0, 0), "{kind}, {date}");
                let now = redis.now_ms();
                server.stop_clock_at_ms(now / DAY_MS * DAY_MS);
            }
        }
    }
}

/// Waits until the server writes this local time into its log: it looks up the zone now and then.
fn shows_local_time(server: &RedisServer, redis: &mut redis::Connection, time: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !server
        .log()
        .lines()
        .any(|line| line.contains("DEBUG LOG: ") && line.contains(time))
    {
        assert!(Instant::now() < deadline, "no {time} in {}", server.log());
        redis.ask::<()>("DEBUG LOG now");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_zone_that_changes_to_summer_time_and_back_changes_no_window() {
    // At 01:00 UTC of 28 March 2027 the hour from 2 to 3 is left out; on 31 October it comes twice.
    for (change, before, after) in [
        (1_806_195_600_000, "28 Mar 2027 01:59:59", "28 Mar 2027 03:00:29"),
        (1_824_944_400_000, "31 Oct 2027 02:59:59", "31 Oct 2027 02:00:29"),
    ] {
        for (kind, day_ends_in) in [("calendar", 23 * HOUR_MS), ("rolling", DAY_MS + 300_000)] {
            let server = server_at(change - 1_000, kind, AMSTERDAM);
            let mut redis = server.connection();
            shows_local_time(&server, &mut redis, before);
            let released = redis.allowed(KEY, "3");
            for _ in 0..25 {
                redis.allowed(KEY, "4 PERMINUTE 30 PERDAY 103");
            }
            let (reason, minute_ends_in) = redis.denied(KEY, "1 PERMINUTE 26 PERDAY 104");
            let whole_minute = if kind == "calendar" { 1_000 } else { 61_000 };
            assert_eq!((&*reason, minute_ends_in), ("minute", whole_minute), "{before}");

            server.move_clock_ms(30_000);
            shows_local_time(&server, &mut redis, after);
            assert!(redis.release(KEY, &released), "{after}");
            let minute = if kind == "calendar" { 0 } else { 25 };
            assert_eq!(redis.used(KEY), (minute, 100), "{kind}, {after}");
            let expires_at = redis.snapshot(KEY.as_bytes()).expires_at;
            assert_eq!(expires_at.cast_unsigned(), change - 1_000 + 26 * HOUR_MS);
            let slot = if kind == "calendar" {
                change
            } else {
                change - 300_000
            };
            let waited = server.waits_exactly(&mut redis, KEY, "1 PERMINUTE 1000");
            let opens_at = slot + day_ends_in;
            assert_eq!(
                waited,
                ("day".into(), opens_at - change - 29_000),
                "{kind}, {after}"
            );
        }
    }
}

#[test]
fn the_day_of_a_zone_is_no_day_of_a_window() {
    // 22:00 UTC is midnight in Amsterdam's summer.
    let server = server_at(MIDNIGHTS[0].1 - 2 * HOUR_MS - 1_000, "calendar", AMSTERDAM);
    let mut redis = server.connection();
    redis.allowed(KEY, "100");
    server.move_clock_ms(MINUTE_MS.cast_signed());
    shows_local_time(&server, &mut redis, "16 Jun 2027 00:00:59");
    let waited = server.waits_exactly(&mut redis, KEY, "1");
    assert_eq!(waited, ("day".into(), 2 * HOUR_MS - MINUTE_MS + 1_000));
}
