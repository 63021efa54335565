//! `MAILRL.LIMITS`: the operator's limits go before what a command asks for, and that before the
//! configuration.

use redis::{Connection, Value};
use test_support::{Calls, Overrides, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

/// Allowed: what is left of minute and day.
fn left(redis: &mut Connection, arguments: &str) -> (u64, u64) {
    let answer = redis.reserve(KEY, arguments);
    assert!(answer.allowed, "{arguments}: {answer:?}");
    (answer.minute_left, answer.day_left)
}

fn overrides(minute: u64, day: u64, concurrent: u64) -> Overrides {
    let given = |limit| Some(limit).filter(|&limit| limit != 0);
    Overrides {
        per_minute: given(minute),
        per_day: given(day),
        concurrent: given(concurrent),
    }
}

#[test]
fn the_operator_goes_before_the_command_and_the_command_before_the_configuration() {
    let server = RedisServer::at_noon(["per-minute", "20", "recipients-per-day", "200"]);
    let mut redis = server.connection();
    assert_eq!(left(&mut redis, "1"), (19, 199));
    assert_eq!(left(&mut redis, "1 PERMINUTE 30 PERDAY 300"), (28, 298));
    redis.limits(KEY, "PERMINUTE 10");
    assert_eq!(left(&mut redis, "1"), (7, 197));
    assert_eq!(left(&mut redis, "1 PERMINUTE 30 PERDAY 300"), (6, 296));
    redis.limits(KEY, "PERDAY 1000");
    assert_eq!(left(&mut redis, "1 PERMINUTE 30 PERDAY 300"), (5, 995));
    assert_eq!(left(&mut redis, "1"), (4, 994));
    // Also above what the command asks for.
    redis.limits(KEY, "PERMINUTE 100");
    assert_eq!(left(&mut redis, "1 PERMINUTE 3 PERDAY 3"), (93, 993));
    // Another mailbox has no part in it.
    let other = redis.reserve("mailrl:other", "1");
    assert_eq!((other.minute_left, other.day_left), (19, 199));
    redis.limits(KEY, "RESET");
    assert_eq!(left(&mut redis, "1 PERMINUTE 30"), (22, 192));
    assert_eq!(left(&mut redis, "1"), (11, 191));
}

#[test]
fn limits_that_are_not_given_stay_as_they_are() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    assert_eq!(redis.limits(KEY, ""), (overrides(0, 0, 0), (25, 9_000)));
    assert_eq!(redis.limits(KEY, "PERDAY 70").0, overrides(0, 70, 0));
    assert_eq!(
        redis.limits(KEY, "concurrent 3 PerMinute 7").0,
        overrides(7, 70, 3)
    );
    assert_eq!(redis.limits(KEY, "PERMINUTE 8").0, overrides(8, 70, 3));
    assert_eq!(redis.limits(KEY, "").0, overrides(8, 70, 3));
    assert_eq!(redis.status(KEY).overrides, overrides(8, 70, 3));
    assert_eq!(redis.limits(KEY, "reset").0, overrides(0, 0, 0));
    assert_eq!(redis.limits(KEY, "RESET").0, overrides(0, 0, 0));
    assert_eq!(redis.status(KEY).overrides, overrides(0, 0, 0));
    let most = "PERMINUTE 4294967295 PERDAY 4294967295 CONCURRENT 1024";
    assert_eq!(
        redis.limits(KEY, most).0,
        overrides(4_294_967_295, 4_294_967_295, 1_024)
    );
    // The defaults are those of the configuration as it is now.
    redis.ask::<()>("CONFIG SET mailrl.per-minute 11 mailrl.recipients-per-day 99");
    assert_eq!(redis.limits(KEY, "").1, (11, 99));
}

#[test]
fn the_reply_is_a_list_of_names_and_values_and_a_map_in_resp3() {
    let server = RedisServer::at_noon([]);
    let bulk = |text: &str| Value::BulkString(text.into());
    let overrides = [
        (bulk("per_minute"), Value::Int(5)),
        (bulk("recipients_per_day"), Value::Nil),
        (bulk("concurrent"), Value::Int(2)),
    ];
    let defaults = [
        (bulk("per_minute"), Value::Int(25)),
        (bulk("recipients_per_day"), Value::Int(9_000)),
    ];
    let words = format!("MAILRL.LIMITS {KEY} CONCURRENT 2 PERMINUTE 5");
    let flat = |pairs: &[(Value, Value)]| {
        let words = pairs
            .iter()
            .flat_map(|(name, value)| [name.clone(), value.clone()]);
        Value::Array(words.collect())
    };
    let wanted = [
        (bulk("overrides"), flat(&overrides)),
        (bulk("defaults"), flat(&defaults)),
    ];
    assert_eq!(server.connection().ask::<Value>(&words), flat(&wanted));

    let wanted = vec![
        (bulk("overrides"), Value::Map(overrides.to_vec())),
        (bulk("defaults"), Value::Map(defaults.to_vec())),
    ];
    let mut resp3 = server.connection_in_resp3();
    assert_eq!(resp3.ask::<Value>(&words), Value::Map(wanted.clone()));
    assert_eq!(
        resp3.ask::<Value>(&format!("MAILRL.LIMITS {KEY}")),
        Value::Map(wanted)
    );
}

#[test]
fn a_status_shows_the_overrides_and_the_limits_in_force() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let in_force = |redis: &mut Connection| {
        let status = redis.status(KEY);
        (status.minute.limit, status.day.limit, status.overrides)
    };
    assert_eq!(in_force(&mut redis), (25, 9_000, overrides(0, 0, 0)));
    redis.limits(KEY, "PERMINUTE 1 CONCURRENT 4");
    assert_eq!(in_force(&mut redis), (1, 9_000, overrides(1, 0, 4)));
    redis.allowed(KEY, "1");
    assert_eq!(redis.status(KEY).minute.room_in_ms, 60_000);
    redis.limits(KEY, "PERDAY 50 PERMINUTE 2");
    assert_eq!(in_force(&mut redis), (2, 50, overrides(2, 50, 4)));
    assert_eq!(redis.status(KEY).minute.room_in_ms, 0);
    redis.limits(KEY, "RESET");
    assert_eq!(in_force(&mut redis), (25, 9_000, overrides(0, 0, 0)));
}

#[test]
fn a_limit_below_what_is_used_denies_from_the_next_call_on_and_leaves_nothing() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        for _ in 0..10 {
            redis.allowed(KEY, "10");
        }
        redis.limits(KEY, "PERMINUTE 4");
        let answer = redis.reserve(KEY, "1");
        assert_eq!(
            (answer.reason.as_str(), answer.minute_left),
            ("minute", 0),
            "{kind}"
        );
        redis.limits(KEY, "PERDAY 40");
        let answer = redis.reserve(KEY, "1");
        assert_eq!(
            (answer.reason.as_str(), answer.minute_left, answer.day_left),
            ("day", 0, 0),
            "{kind}"
        );
        assert_eq!(redis.used(KEY), (10, 100));
        redis.limits(KEY, "PERMINUTE 11 PERDAY 101");
        assert_eq!(left(&mut redis, "1"), (0, 0));
        assert_eq!(redis.denied(KEY, "1").0, "day");
    }
}

#[test]
fn a_window_kind_switched_in_mid_window_keeps_the_overrides() {
    for (from, to) in [("calendar", "rolling"), ("rolling", "calendar")] {
        let server = RedisServer::at_noon(["window", from]);
        let mut redis = server.connection();
        redis.limits(KEY, "PERMINUTE 3 PERDAY 30 CONCURRENT 2");
        let id = redis.allowed(KEY, "9");
        server.move_clock_ms(20_000);
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {to}"));
        assert_eq!(redis.status(KEY).overrides, overrides(3, 30, 2), "{to}");
        assert_eq!(left(&mut redis, "9"), (1, 12));
        assert_eq!(redis.denied(KEY, "9").0, "concurrent");
        redis.limits(KEY, "CONCURRENT 9");
        assert_eq!(left(&mut redis, "12"), (0, 0));
        assert!(redis.release(KEY, &id));
        assert_eq!(redis.denied(KEY, "10").0, "day");
        assert_eq!(left(&mut redis, "9"), (0, 0), "{to}");
        assert_eq!(redis.limits(KEY, "").0, overrides(3, 30, 9));
    }
}

#[test]
fn a_mail_that_only_the_operator_makes_too_large_waits_an_hour() {
    let server = RedisServer::at_noon(["recipients-per-day", "100"]);
    let mut redis = server.connection();
    redis.limits(KEY, "PERDAY 10");
    assert_eq!(redis.denied(KEY, "11"), ("day".into(), 3_600_000));
    assert_eq!(redis.denied(KEY, "100"), ("day".into(), 3_600_000));
    assert_eq!(redis.denied(KEY, "9 BULK"), ("day".into(), 3_600_000));
    assert_eq!(redis.denied(KEY, "50 PERDAY 50"), ("day".into(), 3_600_000));
    // What no day would hold without the operator either is too large, for all of them.
    for arguments in ["101", "51 PERDAY 50", "81 BULK", "41 BULK PERDAY 50"] {
        let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} {arguments}"));
        assert!(error.starts_with("TOOLARGE "), "{arguments}: {error}");
    }
    assert_eq!(redis.counter("mailrl", "mailrl_denied_day"), 4);
    assert_eq!(redis.used(KEY), (0, 0));
    redis.limits(KEY, "PERDAY 101");
    // A larger limit of the operator lets it through.
    redis.allowed(KEY, "101 PERDAY 50");
}

#[test]
fn an_override_of_the_concurrent_sends_holds_for_those_too_who_do_not_ask_for_one() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.limits(KEY, "CONCURRENT 2");
    let first = redis.allowed(KEY, "1");
    redis.allowed(KEY, "1 CONCURRENT 1");
    for arguments in ["1", "1 CONCURRENT 1", "1 CONCURRENT 1000", "1 BULK"] {
        assert_eq!(
            redis.denied(KEY, arguments),
            ("concurrent".into(), 250),
            "{arguments}"
        );
    }
    redis.limits(KEY, "CONCURRENT 3");
    redis.allowed(KEY, "1 CONCURRENT 1");
    redis.denied(KEY, "1");
    // A lower one takes nothing back, and denies until enough are closed.
    redis.limits(KEY, "CONCURRENT 1");
    redis.commit(KEY, &first);
    redis.denied(KEY, "1");
    assert_eq!(redis.status(KEY).open, 2);
    redis.limits(KEY, "RESET");
    redis.allowed(KEY, "1");
    redis.denied(KEY, "1 CONCURRENT 3");
}

#[test]
fn limits_can_be_set_when_memory_is_out() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    redis.ask::<()>("CONFIG SET maxmemory 1");
    assert!(
        redis
            .refusal(&format!("MAILRL.RESERVE {KEY} 1"))
            .starts_with("OOM ")
    );
    assert_eq!(redis.limits(KEY, "PERMINUTE 2").0, overrides(2, 0, 0));
    redis.ask::<()>("CONFIG SET maxmemory 0");
    assert_eq!(left(&mut redis, "1"), (0, 8_998));
}
