//! What each command replies.

use redis::Value;
use test_support::{Answer, Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

#[test]
fn a_reservation_is_answered_by_six_values() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let bulk = |text: &str| Value::BulkString(text.into());

    let allowed: Value = redis.ask(&format!("MAILRL.RESERVE {KEY} 3 PERMINUTE 1"));
    let id = bulk(&format!("{NOON_MS}-0"));
    assert_eq!(
        allowed,
        Value::Array(vec![
            Value::Int(1),
            bulk("ok"),
            Value::Int(0),
            Value::Int(0),
            Value::Int(8_997),
            id
        ])
    );
    let denied: Value = redis.ask(&format!("MAILRL.RESERVE {KEY} 3 PERMINUTE 1"));
    assert_eq!(
        denied,
        Value::Array(vec![
            Value::Int(0),
            bulk("minute"),
            Value::Int(60_000),
            Value::Int(0),
            Value::Int(8_997),
            bulk(""),
        ])
    );
}

#[test]
fn a_reservation_counts_one_message_and_all_its_recipients() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let mut recipients_left = 9_000;
    for (count, recipients) in [1, 500, 7, 1, 20].into_iter().enumerate() {
        recipients_left -= recipients;
        let answer = redis.reserve(KEY, &recipients.to_string());
        assert_eq!(answer.minute_left, 24 - count as u64);
        assert_eq!(answer.day_left, recipients_left);
        assert_eq!(answer.reservation, format!("{NOON_MS}-{count}"));
    }
    assert_eq!(redis.used(KEY), (5, 529));
}

#[test]
fn a_mailbox_has_no_part_in_the_budget_of_another() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed("mailrl:a", "1 PERMINUTE 1");
    redis.denied("mailrl:a", "1 PERMINUTE 1");
    redis.allowed("mailrl:b", "1 PERMINUTE 1");
}

#[test]
fn a_message_over_the_minute_is_denied_and_counts_nothing() {
    let server = RedisServer::at_noon(["pacing", "no", "per-minute", "2"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    redis.allowed(KEY, "1");
    let denied = Answer {
        allowed: false,
        reason: "minute".into(),
        retry_after_ms: 60_000,
        minute_left: 0,
        day_left: 8_998,
        reservation: String::new(),
    };
    assert_eq!(redis.reserve(KEY, "5"), denied);
    assert_eq!(redis.reserve(KEY, "5"), denied);
    assert_eq!(redis.used(KEY), (2, 2));
}

#[test]
fn recipients_over_the_day_are_denied_while_fewer_still_fit() {
    let server = RedisServer::at_noon(["recipients-per-day", "10"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "7");
    assert_eq!(redis.denied(KEY, "4"), ("day".into(), 12 * 3_600_000));
    let last = redis.reserve(KEY, "3");
    assert_eq!((last.allowed, last.day_left), (true, 0));
    assert_eq!(redis.denied(KEY, "1").0, "day");
    assert_eq!(redis.used(KEY), (2, 10));
}

#[test]
fn the_longest_of_several_denials_is_named() {
    let server = RedisServer::at_noon(["pacing", "no"]);
    let mut redis = server.connection();
    let over_all = "1 PERMINUTE 1 PERDAY 1 CONCURRENT 1";
    redis.allowed(KEY, "1");
    redis.pause(KEY, 59_000);
    assert_eq!(redis.denied(KEY, "1 PERMINUTE 1").0, "minute");
    redis.pause(KEY, 61_000);
    assert_eq!(redis.denied(KEY, "1 PERMINUTE 1"), ("paused".into(), 61_000));
    assert_eq!(redis.denied(KEY, over_all), ("day".into(), 12 * 3_600_000));
    redis.pause(KEY, 86_400_000);
    assert_eq!(redis.denied(KEY, over_all), ("paused".into(), 86_400_000));
    redis.pause(KEY, 0);
    // `concurrent` only when nothing else denies, though its hint is the shortest.
    assert_eq!(redis.denied(KEY, "1 CONCURRENT 1").0, "concurrent");
}

#[test]
fn options_come_in_any_case_and_order() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for (mailbox, options) in [
        "PERMINUTE 3 PERDAY 40 CONCURRENT 1 LEASE 50",
        "lease 50 concurrent 1 perday 40 perminute 3",
        "Concurrent 1 LeAsE 50 PerMinute 3 PERday 40",
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("mailrl:{mailbox}");
        let answer = redis.reserve(&key, &format!("4 {options}"));
        assert_eq!((answer.minute_left, answer.day_left), (2, 36), "{options}");
        assert_eq!(
            redis.denied(&key, &format!("4 {options}")),
            ("concurrent".into(), 250)
        );
        server.move_clock_ms(50);
        redis.allowed(&key, &format!("4 {options}"));
        server.move_clock_ms(-50);
    }
}

#[test]
fn limits_of_the_command_go_before_the_configuration() {
    let server = RedisServer::at_noon(["per-minute", "2", "recipients-per-day", "20"]);
    let mut redis = server.connection();
    let left = |answer: Answer| (answer.minute_left, answer.day_left);
    assert_eq!(left(redis.reserve(KEY, "5")), (1, 15));
    assert_eq!(left(redis.reserve(KEY, "5 PERMINUTE 10")), (8, 10));
    assert_eq!(left(redis.reserve(KEY, "5 PERDAY 100 PERMINUTE 10")), (7, 85));
    // A changed limit counts from the next command on, and what is used stays used.
    assert_eq!(left(redis.reserve(KEY, "1")), (0, 5));
    assert_eq!(
        left(redis.reserve(KEY, "1 PERMINUTE 4294967295 PERDAY 4294967295")),
        (4_294_967_291, 4_294_967_279)
    );
}

#[test]
fn as_many_are_open_at_once_as_concurrent_says_and_no_more() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let first = redis.allowed(KEY, "1 CONCURRENT 2");
    let second = redis.allowed(KEY, "1 CONCURRENT 2");
    assert_eq!(redis.denied(KEY, "1 CONCURRENT 2"), ("concurrent".into(), 250));
    assert_eq!(redis.status(KEY).open, 2);
    // It holds only for those who ask for it.
    redis.allowed(KEY, "1 CONCURRENT 3");
    let fourth = redis.allowed(KEY, "1");

    redis.commit(KEY, &first);
    redis.commit(KEY, &fourth);
    assert_eq!(redis.denied(KEY, "1 CONCURRENT 2").0, "concurrent");
    redis.release(KEY, &second);
    redis.allowed(KEY, "1 CONCURRENT 2");
}

#[test]
fn more_recipients_than_any_day_holds_are_too_large() {
    let server = RedisServer::at_noon(["recipients-per-day", "10"]);
    let mut redis = server.connection();
    for used in 0..=1 {
        let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 11"));
        assert!(
            error.starts_with("TOOLARGE ") && error.contains("11") && error.contains("10"),
            "{error}"
        );
        let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 6 PERDAY 5"));
        assert!(error.starts_with("TOOLARGE "), "{error}");
        assert_eq!(redis.used(KEY), (used, used));
        assert_eq!(redis.ask::<u64>(&format!("EXISTS {KEY}")), used);
        redis.allowed(KEY, "1");
    }
    assert_eq!(redis.counter("mailrl", "mailrl_too_large"), 4);
    redis.allowed(KEY, "11 PERDAY 13");
}

#[test]
fn a_pause_denies_all_until_it_ends() {
    let server = RedisServer::at_noon(["pacing", "no"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    assert_eq!(redis.pause(KEY, 5_000), NOON_MS + 5_000);
    assert_eq!(redis.status(KEY).paused_for_ms, 5_000);
    assert_eq!(redis.denied(KEY, "1"), ("paused".into(), 5_000));
    server.move_clock_ms(4_999);
    assert_eq!(redis.denied(KEY, "1"), ("paused".into(), 1));
    server.move_clock_ms(1);
    redis.allowed(KEY, "1");
    assert_eq!(redis.status(KEY).paused_for_ms, 0);
}

#[test]
fn the_longer_pause_wins_and_zero_ends_it() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    assert_eq!(redis.pause(KEY, 5_000), NOON_MS + 5_000);
    assert_eq!(redis.pause(KEY, 1_000), NOON_MS + 5_000);
    assert_eq!(redis.pause(KEY, 9_000), NOON_MS + 9_000);
    assert_eq!(redis.pause(KEY, 0), 0);
    redis.allowed(KEY, "1");
    assert_eq!(redis.pause(KEY, 1_000), NOON_MS + 1_000);
}

#[test]
fn a_pause_gives_a_mailbox_without_state_some_that_outlasts_it() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    assert_eq!(redis.pause(KEY, 0), 0);
    assert_eq!(redis.ask::<u64>(&format!("EXISTS {KEY}")), 0);
    let until = redis.pause(KEY, 86_400_000);
    let expires_at = redis.ask::<u64>(&format!("PEXPIRETIME {KEY}"));
    assert!(expires_at > until, "{expires_at} <= {until}");
    assert_eq!(redis.used(KEY), (0, 0));
}

#[test]
fn a_status_shows_both_windows_the_pause_and_what_is_open() {
    let server = RedisServer::at_noon(["per-minute", "2", "recipients-per-day", "9"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "8");
    let second = redis.allowed(KEY, "1");
    redis.commit(KEY, &second);
    redis.pause(KEY, 777);
    server.move_clock_ms(500);
    let status = redis.status(KEY);
    assert_eq!(status.window, "calendar");
    assert_eq!(
        (status.minute.used, status.minute.limit, status.minute.room_in_ms),
        (2, 2, 59_500)
    );
    assert_eq!(
        (status.day.used, status.day.limit, status.day.room_in_ms),
        (9, 9, 12 * 3_600_000 - 500)
    );
    assert_eq!((status.open, status.paused_for_ms), (1, 277));
}

#[test]
fn a_status_of_a_mailbox_without_state_shows_it_unused_and_makes_no_key() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let status = redis.status(KEY);
    assert_eq!(
        (status.minute.used, status.minute.limit, status.minute.room_in_ms),
        (0, 25, 0)
    );
    assert_eq!(
        (status.day.used, status.day.limit, status.day.room_in_ms),
        (0, 9_000, 0)
    );
    assert_eq!((status.open, status.paused_for_ms), (0, 0));
    assert_eq!(redis.ask::<u64>("DBSIZE"), 0);
}

#[test]
fn a_status_is_a_map_in_resp3() {
    let server = RedisServer::at_noon([]);
    let status: Value = server.connection_in_resp3().ask(&format!("MAILRL.STATUS {KEY}"));
    let Value::Map(fields) = status else {
        panic!("not a map: {status:?}");
    };
    let names: Vec<_> = fields.iter().map(|(name, _)| name.clone()).collect();
    for name in ["window", "minute", "day", "open", "paused_for_ms", "overrides"] {
        assert!(names.contains(&Value::BulkString(name.into())), "{names:?}");
    }
    assert_eq!(
        server.connection_in_resp3().status(KEY),
        server.connection().status(KEY)
    );
}

#[test]
fn the_retry_time_is_that_of_the_servers_clock() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    for (reason, window_ms, options) in [
        ("minute", 60_000, "1 PERMINUTE 1"),
        ("day", 86_400_000, "1 PERDAY 1"),
    ] {
        // At a window's edge the first call counts in the window before, and nothing is denied.
        let denied = (0..10).find_map(|attempt| {
            let key = format!("{KEY}:{reason}:{attempt}");
            redis.allowed(&key, options);
            let before = redis.now_ms();
            let answer = redis.reserve(&key, options);
            let after = redis.now_ms();
            (!answer.allowed).then_some((before, answer, after))
        });
        let (before, answer, after) = denied.expect("one in ten is not at an edge");
        assert_eq!(answer.reason, reason);
        let opens_at = (before / window_ms + 1) * window_ms;
        let waits = opens_at.saturating_sub(after)..=opens_at - before;
        assert!(
            waits.contains(&answer.retry_after_ms),
            "{answer:?}, not {waits:?}"
        );
    }
}
