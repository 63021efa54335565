//! Bulk mail leaves the last part of every window to other mail, and queues apart.

use redis::Connection;
use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
/// The kinds, with what their minute covers.
const KINDS: [(&str, u64); 2] = [("calendar", 60_000), ("rolling", 61_000)];

fn waits(redis: &mut Connection, arguments: &str, count: usize) -> Vec<u64> {
    (0..count).map(|_| redis.denied(KEY, arguments).1).collect()
}

/// How many messages of one recipient are allowed now.
fn fits(redis: &mut Connection, key: &str, arguments: &str) -> u64 {
    let mut count = 0;
    while redis.reserve(key, arguments).allowed {
        count += 1;
    }
    count
}

#[test]
fn bulk_mail_ends_at_its_share_of_the_minute_while_other_mail_still_goes() {
    for (kind, span_ms) in KINDS {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        for left in (0..20).rev() {
            assert_eq!(redis.reserve(KEY, "1 BULK").minute_left, left);
        }
        assert_eq!(redis.denied(KEY, "1 BULK"), ("minute".into(), span_ms), "{kind}");
        for left in (0..5).rev() {
            assert_eq!(redis.reserve(KEY, "1").minute_left, left);
        }
        assert_eq!(redis.denied(KEY, "1"), ("minute".into(), span_ms), "{kind}");
        assert_eq!(redis.used(KEY), (25, 25));
    }
}

#[test]
fn bulk_mail_ends_at_its_share_of_the_day_while_other_mail_still_goes() {
    for (kind, _) in KINDS {
        let server = RedisServer::at_noon(["window", kind, "recipients-per-day", "99"]);
        let mut redis = server.connection();
        // 79.2, rounded down.
        assert_eq!(redis.reserve(KEY, "70 BULK").day_left, 9);
        assert_eq!(redis.denied(KEY, "10 BULK").0, "day");
        assert_eq!(redis.reserve(KEY, "9 BULK").day_left, 0);
        assert_eq!(redis.denied(KEY, "1 BULK").0, "day");
        assert_eq!(redis.reserve(KEY, "1").day_left, 19, "{kind}");
        redis.allowed(KEY, "19");
        assert_eq!(redis.denied(KEY, "1").0, "day");
        assert_eq!(redis.used(KEY), (4, 99));
    }
}

#[test]
fn the_whole_use_of_a_window_counts_and_not_that_of_bulk_mail_alone() {
    let server = RedisServer::at_noon(["recipients-per-day", "50"]);
    let mut redis = server.connection();
    for _ in 0..19 {
        redis.allowed(KEY, "2");
    }
    assert_eq!(redis.reserve(KEY, "1 BULK").minute_left, 0);
    assert_eq!(redis.denied(KEY, "1 BULK").0, "minute");
    // Other mail can use up what bulk mail could have.
    server.move_clock_ms(60_000);
    redis.allowed(KEY, "2");
    let answer = redis.reserve(KEY, "1 BULK");
    assert_eq!((answer.reason.as_str(), answer.day_left), ("day", 0));
    redis.allowed(KEY, "9");
}

#[test]
fn the_share_is_rounded_down_and_at_least_one() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for (limit, share, fit) in [
        (1, 80, 1),
        (2, 80, 1),
        (4, 80, 3),
        (9, 80, 7),
        (10, 80, 8),
        (25, 80, 20),
        (25, 99, 24),
        (25, 100, 25),
        (25, 1, 1),
        (199, 1, 1),
        (200, 1, 2),
        (7, 50, 3),
    ] {
        redis.ask::<()>(&format!("CONFIG SET mailrl.bulk-share {share}"));
        let key = format!("mailrl:minute:{limit}:{share}");
        let arguments = format!("1 BULK PERMINUTE {limit}");
        assert_eq!(
            fits(&mut redis, &key, &arguments),
            fit,
            "{share} % of {limit} a minute"
        );
        let key = format!("mailrl:day:{limit}:{share}");
        let arguments = format!("1 BULK PERMINUTE 1000000 PERDAY {limit}");
        assert_eq!(
            fits(&mut redis, &key, &arguments),
            fit,
            "{share} % of {limit} a day"
        );
    }
    let answer = redis.reserve(KEY, "1 BULK PERMINUTE 4294967295 PERDAY 4294967295");
    assert_eq!(
        (answer.minute_left, answer.day_left),
        (2_147_483_646, 2_147_483_646)
    );
}

#[test]
fn a_changed_share_counts_from_the_very_next_call() {
    let server = RedisServer::at_noon(["bulk-share", "40"]);
    let mut redis = server.connection();
    assert_eq!(fits(&mut redis, KEY, "1 BULK"), 10);
    redis.ask::<()>("CONFIG SET mailrl.bulk-share 48");
    assert_eq!(fits(&mut redis, KEY, "1 BULK"), 2);
    redis.ask::<()>("CONFIG SET mailrl.bulk-share 100");
    assert_eq!(fits(&mut redis, KEY, "1 BULK"), 13);
    redis.denied(KEY, "1");
    redis.ask::<()>("CONFIG SET mailrl.bulk-share 1");
    let answer = redis.reserve(KEY, "1 BULK");
    assert_eq!(
        (answer.allowed, answer.minute_left, answer.day_left),
        (false, 0, 65)
    );
}

#[test]
fn the_share_is_that_of_the_limits_in_force() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let left = |redis: &mut Connection, arguments: &str| {
        let answer = redis.reserve(KEY, arguments);
        (answer.minute_left, answer.day_left)
    };
    assert_eq!(left(&mut redis, "1 BULK"), (19, 7_199));
    assert_eq!(left(&mut redis, "1 bulk PERMINUTE 10 PERDAY 100"), (6, 78));
    redis.limits(KEY, "PERMINUTE 50 PERDAY 1000");
    assert_eq!(left(&mut redis, "1 PERMINUTE 10 Bulk PERDAY 100"), (37, 797));
    assert_eq!(left(&mut redis, "1 PERMINUTE 10 PERDAY 100"), (46, 996));
}

#[test]
fn bulk_mail_waits_until_its_share_of_a_window_is_free() {
    let server = RedisServer::at_noon(["window", "rolling", "per-minute", "10"]);
    let mut redis = server.connection();
    for _ in 0..10 {
        redis.allowed(KEY, "1");
        server.move_clock_ms(1_000);
    }
    // Other mail once the first second has left, bulk mail once the third has.
    assert_eq!(redis.denied(KEY, "1").1, 51_000);
    assert_eq!(redis.denied(KEY, "1 BULK").1, 53_000);
    server.move_clock_ms(52_999);
    assert_eq!(redis.reserve(KEY, "1 BULK").reason, "minute");
    server.move_clock_ms(1);
    redis.allowed(KEY, "1 BULK");
}

#[test]
fn a_queue_of_bulk_mail_pushes_no_other_mail_and_the_other_way_round() {
    for (kind, span_ms) in KINDS {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        for _ in 0..25 {
            redis.allowed(KEY, "1");
        }
        let queue = |step_us: u64, from: u64| -> Vec<u64> {
            let turn = |nth: u64| span_ms + (nth * step_us).div_ceil(1_000);
            (from..from + 40).map(turn).collect()
        };
        let (of_25, of_20) = (span_ms * 40, span_ms * 50);
        assert_eq!(waits(&mut redis, "1 BULK", 40), queue(of_20, 0), "{kind}");
        assert_eq!(waits(&mut redis, "1", 40), queue(of_25, 0), "{kind}");
        assert_eq!(waits(&mut redis, "1 BULK", 40), queue(of_20, 40), "{kind}");
        assert_eq!(waits(&mut redis, "1", 40), queue(of_25, 40), "{kind}");
    }
}

#[test]
fn a_queue_for_the_day_of_bulk_mail_pushes_no_other_mail() {
    let server = RedisServer::at_noon(["recipients-per-day", "1000"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1000");
    let (noon_to_midnight, day_ms) = (43_200_000, 86_400_000);
    assert_eq!(
        waits(&mut redis, "8 BULK", 3),
        [0, 1, 2].map(|nth| noon_to_midnight + nth * day_ms / 100)
    );
    assert_eq!(
        waits(&mut redis, "8", 3),
        [0, 1, 2].map(|nth| noon_to_midnight + nth * day_ms / 125)
    );
}

#[test]
fn a_password_reset_does_not_wait_behind_a_campaign() {
    for (kind, _) in KINDS {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let mut due: Vec<u64> = vec![0; 300];
        let mut now = 0;
        while let Some(index) = due
            .iter()
            .enumerate()
            .min_by_key(|(_, at)| **at)
            .map(|(index, _)| index)
        {
            let at = due.swap_remove(index);
            if now / 120_000 < at / 120_000 {
                redis.allowed(KEY, "1");
            }
            server.move_clock_ms((at - now).cast_signed());
            now = at;
            let answer = redis.reserve(KEY, "1 BULK");
            if !answer.allowed {
                due.push(at + answer.retry_after_ms);
            }
        }
        // 300 at 20 a minute: the campaign went on all the time.
        assert!((840_000..960_000).contains(&now), "{kind}: {now} ms");
    }
}

#[test]
fn a_bulk_message_beyond_its_lanes_day_is_too_large() {
    let server = RedisServer::at_noon(["recipients-per-day", "100"]);
    let mut redis = server.connection();
    for _ in 0..2 {
        let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 81 BULK"));
        assert!(
            error.starts_with("TOOLARGE ") && error.contains("a day's bulk share of 80"),
            "{error}"
        );
        let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 9 BULK PERDAY 10"));
        assert!(
            error.starts_with("TOOLARGE ") && error.contains("a day's bulk share of 8;"),
            "{error}"
        );
        redis.allowed(KEY, "1 BULK");
    }
    server.move_clock_ms(86_400_000);
    redis.allowed(KEY, "80 BULK");
    let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 101"));
    assert!(error.contains("a day of 100"), "{error}");
}

#[test]
fn a_bulk_reservation_is_released_committed_and_held_back_as_any_other() {
    for (kind, _) in KINDS {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let first = redis.allowed(KEY, "3 BULK CONCURRENT 2");
        let second = redis.allowed(KEY, "4 CONCURRENT 2");
        assert_eq!(redis.denied(KEY, "1 BULK CONCURRENT 2").0, "concurrent");
        assert!(redis.release(KEY, &first) && redis.commit(KEY, &second));
        assert_eq!(redis.used(KEY), (1, 4), "{kind}");
        redis.pause(KEY, 5_000);
        assert_eq!(redis.denied(KEY, "1 BULK"), ("paused".into(), 5_000));
    }
}
