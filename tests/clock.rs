//! Windows open as time passes: on a real server whose clock the test moves. Where the moment at which
//! one opens is the subject, no turns put it off.

use test_support::{Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;
const MIDNIGHT_MS: u64 = NOON_MS + 12 * HOUR_MS;

#[test]
fn a_calendar_minute_ends_with_the_minute() {
    let server = RedisServer::at_noon(["pacing", "no"]);
    let mut redis = server.connection();
    for (start, rest) in [(0, 60_000), (1, 59_999), (30_500, 29_500), (59_999, 1)] {
        let now = redis.now_ms();
        server.stop_clock_at_ms(now / MINUTE_MS * MINUTE_MS + MINUTE_MS + start);
        for _ in 0..25 {
            redis.allowed(KEY, "1");
        }
        let waited = if rest == 1 {
            redis.denied(KEY, "1")
        } else {
            server.waits_exactly(&mut redis, KEY, "1")
        };
        assert_eq!(waited, ("minute".into(), rest));
    }
}

#[test]
fn a_rolling_minute_is_over_when_its_oldest_second_has_left() {
    let server = RedisServer::at_noon(["pacing", "no", "window", "rolling"]);
    let mut redis = server.connection();
    server.move_clock_ms(250);
    for _ in 0..25 {
        redis.allowed(KEY, "1");
        server.move_clock_ms(1_000);
    }
    // The first one counted in the second that began at noon, which is covered for 61 s.
    assert_eq!(
        server.waits_exactly(&mut redis, KEY, "1"),
        ("minute".into(), 61_000 - 25_250)
    );
    // Then one more place each second.
    assert_eq!(
        server.waits_exactly(&mut redis, KEY, "1"),
        ("minute".into(), 1_000)
    );
    assert_eq!(
        server.waits_exactly(&mut redis, KEY, "1"),
        ("minute".into(), 1_000)
    );
}

#[test]
fn a_calendar_day_ends_at_midnight_utc() {
    let server = RedisServer::at_noon(["pacing", "no", "recipients-per-day", "10"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "8");
    server.stop_clock_at_ms(MIDNIGHT_MS - 1_000);
    redis.allowed(KEY, "2");
    assert_eq!(server.waits_exactly(&mut redis, KEY, "10"), ("day".into(), 1_000));
    assert_eq!(redis.now_ms(), MIDNIGHT_MS);
    assert_eq!(redis.used(KEY).1, 10);
}

#[test]
fn a_rolling_day_is_over_when_enough_of_its_oldest_five_minutes_have_left() {
    let server = RedisServer::at_noon(["pacing", "no", "window", "rolling", "recipients-per-day", "10"]);
    let mut redis = server.connection();
    server.move_clock_ms(1_000);
    redis.allowed(KEY, "3");
    server.move_clock_ms(HOUR_MS.cast_signed());
    redis.allowed(KEY, "6");
    // For one more there is room, for two once the three have left, for five when the six have.
    assert_eq!(
        redis.denied(KEY, "2"),
        ("day".into(), DAY_MS + 300_000 - HOUR_MS - 1_000)
    );
    assert_eq!(redis.denied(KEY, "5"), ("day".into(), DAY_MS + 300_000 - 1_000));
    assert_eq!(server.waits_exactly(&mut redis, KEY, "2").0, "day");
    assert_eq!(server.waits_exactly(&mut redis, KEY, "5").0, "day");
}

#[test]
fn a_limit_that_was_lowered_is_waited_for_until_enough_has_left() {
    let server = RedisServer::at_noon(["pacing", "no", "window", "rolling"]);
    let mut redis = server.connection();
    for _ in 0..10 {
        redis.allowed(KEY, "4");
        server.move_clock_ms(1_000);
    }
    // Eight of ten have to leave: the eighth counted in the second that began 7 s after noon.
    let waited = server.waits_exactly(&mut redis, KEY, "1 PERMINUTE 3");
    assert_eq!(waited, ("minute".into(), 7_000 + 61_000 - 10_000));
    redis.ask::<()>("CONFIG SET mailrl.recipients-per-day 7");
    assert_eq!(server.waits_exactly(&mut redis, KEY, "3").0, "day");
    assert_eq!(redis.now_ms(), NOON_MS + DAY_MS + 300_000);
}

#[test]
fn a_pause_and_a_full_minute_are_waited_out_in_one() {
    let server = RedisServer::at_noon(["pacing", "no", "window", "rolling", "per-minute", "1"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    redis.pause(KEY, 90_000);
    assert_eq!(
        server.waits_exactly(&mut redis, KEY, "1"),
        ("paused".into(), 90_000)
    );
    redis.pause(KEY, 10_000);
    assert_eq!(
        server.waits_exactly(&mut redis, KEY, "1"),
        ("minute".into(), 61_000)
    );
}

/// Sends whatever is allowed, trying every so often; gives when each mail arrived.
fn greedy(server: &RedisServer, arguments: &str, every_ms: u64, for_ms: u64, send_ms: i64) -> Vec<u64> {
    let mut redis = server.connection();
    let mut arrived = Vec::new();
    let end = redis.now_ms() + for_ms;
    while redis.now_ms() < end {
        let answer = redis.reserve(KEY, arguments);
        if answer.allowed {
            // A mail arrives at some time from its reservation to its commit: here at either end.
            let reserved_at = redis.now_ms();
            server.move_clock_ms(send_ms);
            let late = arrived.len() % 2 == 1;
            arrived.push(if late { redis.now_ms() } else { reserved_at });
            redis.commit(KEY, &answer.reservation);
        }
        server.move_clock_ms(every_ms.cast_signed());
    }
    arrived
}

/// The most that any span of this length holds.
fn most_in(sent: &[u64], span_ms: u64) -> usize {
    let in_span = |start: &u64| {
        sent.iter()
            .filter(|&at| (*start..start + span_ms).contains(at))
            .count()
    };
    sent.iter().map(in_span).max().unwrap_or(0)
}

#[test]
fn no_rolling_minute_holds_more_than_its_limit_however_it_is_aligned() {
    let server = RedisServer::at_noon(["window", "rolling", "per-minute", "7"]);
    for (every_ms, send_ms) in [(137, 0), (999, 0), (61, 1_700)] {
        let sent = greedy(&server, "1", every_ms, 4 * MINUTE_MS, send_ms);
        assert_eq!(most_in(&sent, MINUTE_MS), 7, "every {every_ms} ms: {sent:?}");
    }
}

#[test]
fn no_rolling_day_holds_more_than_its_limit_however_it_is_aligned() {
    let server = RedisServer::at_noon(["window", "rolling", "recipients-per-day", "30"]);
    server.move_clock_ms(250_000);
    let sent = greedy(&server, "3", 61_000, 3 * DAY_MS, 0);
    assert_eq!(most_in(&sent, DAY_MS), 10, "{sent:?}");
}

#[test]
fn days_in_which_nothing_was_sent_leave_the_whole_budget() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind, "per-minute", "1", "recipients-per-day", "5"]);
        let mut redis = server.connection();
        redis.allowed(KEY, "5");
        redis.ask::<u8>(&format!("PERSIST {KEY}"));
        server.move_clock_ms(40 * DAY_MS.cast_signed());
        assert_eq!(redis.used(KEY), (0, 0), "{kind}");
        redis.allowed(KEY, "5");
        assert_eq!(redis.denied(KEY, "1").0, "day");
    }
}
