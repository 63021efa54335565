//! Configuration: load arguments, redis.conf, `CONFIG SET` at run time.

use std::collections::BTreeMap;

use redis::Connection;
use test_support::{Calls, RedisServer, module_path};

const KEY: &str = "mailrl:orders@example.com";

fn settings(redis: &mut Connection) -> BTreeMap<String, String> {
    redis.ask("CONFIG GET mailrl.*")
}

fn are(redis: &mut Connection, per_minute: &str, per_day: &str, window: &str) {
    let wanted = [
        ("mailrl.per-minute", per_minute),
        ("mailrl.recipients-per-day", per_day),
        ("mailrl.window", window),
    ];
    let settings = settings(redis);
    for (name, value) in wanted {
        assert_eq!(settings.get(name).map(String::as_str), Some(value), "{name}");
    }
    let status = redis.status(KEY);
    assert_eq!(status.minute.limit.to_string(), per_minute);
    assert_eq!(status.day.limit.to_string(), per_day);
    assert_eq!(status.window, window);
}

fn load_line(arguments: &str) -> String {
    format!("loadmodule {} {arguments}\n", module_path().display())
}

#[test]
fn the_defaults_leave_room_below_microsofts_limits() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    are(&mut redis, "25", "9000", "calendar");
    assert_eq!(settings(&mut redis)["mailrl.pacing"], "yes");
    assert_eq!(settings(&mut redis)["mailrl.bulk-share"], "80");
}

#[test]
fn load_arguments_set_the_configuration() {
    let server = RedisServer::with_module(["pacing", "NO", "bulk-share", "55"]);
    let settings = settings(&mut server.connection());
    assert_eq!(settings["mailrl.pacing"], "no");
    assert_eq!(settings["mailrl.bulk-share"], "55");
    let server = RedisServer::with_module(["Window", "ROLLING", "per-minute", "7"]);
    are(&mut server.connection(), "7", "9000", "rolling");
    let all = [
        "recipients-per-day",
        "4294967295",
        "window",
        "calendar",
        "per-minute",
        "1",
    ];
    let server = RedisServer::with_module(all);
    are(&mut server.connection(), "1", "4294967295", "calendar");
}

#[test]
fn a_server_with_wrong_load_arguments_does_not_start_and_says_why() {
    for (arguments, named) in [
        ("per-hour 5", "unknown argument 'per-hour'"),
        ("5", "unknown argument '5'"),
        ("per-minute 5 PER-MINUTE 6", "'PER-MINUTE' is given twice"),
        ("per-minute", "'per-minute' lacks its value"),
        (
            "window rolling recipients-per-day",
            "'recipients-per-day' lacks its value",
        ),
        (
            "per-minute 0",
            "'per-minute' cannot be '0'; it is an integer from 1 to 4294967295",
        ),
        ("per-minute -1", "cannot be '-1'"),
        ("per-minute +5", "cannot be '+5'"),
        ("per-minute 4294967296", "cannot be '4294967296'"),
        (
            "recipients-per-day 99999999999999999999",
            "cannot be '99999999999999999999'",
        ),
        ("recipients-per-day many", "cannot be 'many'"),
        (
            "window sliding",
            "'window' cannot be 'sliding'; it is calendar or rolling",
        ),
        ("pacing maybe", "'pacing' cannot be 'maybe'; it is no or yes"),
        (
            "bulk-share 0",
            "'bulk-share' cannot be '0'; it is an integer from 1 to 100",
        ),
        ("bulk-share 101", "cannot be '101'"),
        ("per-minute %s%n", "cannot be '%s%n'"),
    ] {
        let log = RedisServer::builder()
            .configuration(&load_line(arguments))
            .try_start()
            .expect_err(arguments);
        assert!(
            log.contains("mailrl was not loaded: ") && log.contains(named),
            "{arguments}:\n{log}"
        );
    }
}

#[test]
fn a_module_that_was_refused_can_be_loaded_with_better_arguments() {
    let server = RedisServer::builder()
        .arguments(["--enable-module-command", "yes"])
        .start();
    let mut redis = server.connection();
    let load = format!("MODULE LOAD {}", module_path().display());
    redis.refusal(&format!("{load} per-minute 0"));
    assert!(
        redis
            .refusal(&format!("MAILRL.STATUS {KEY}"))
            .contains("unknown command")
    );
    redis.ask::<()>(&format!("{load} per-minute 3"));
    are(&mut redis, "3", "9000", "calendar");
    redis.refusal(&load);

    // What it counted stays when it is taken out and put back.
    redis.allowed(KEY, "5");
    redis.ask::<()>("MODULE UNLOAD mailrl");
    assert!(
        redis
            .refusal(&format!("MAILRL.STATUS {KEY}"))
            .contains("unknown command")
    );
    redis.ask::<()>(&format!("{load} window rolling"));
    assert_eq!(redis.used(KEY), (1, 5));
}

#[test]
fn redis_conf_goes_before_load_arguments() {
    let server = RedisServer::builder()
        .configuration(&format!(
            "{}mailrl.window rolling\nmailrl.recipients-per-day 70\n",
            load_line("per-minute 6 recipients-per-day 60")
        ))
        .start();
    are(&mut server.connection(), "6", "70", "rolling");
}

#[test]
fn a_server_with_a_wrong_line_in_redis_conf_does_not_start() {
    let ours = "a setting `mailrl.…` in the server's configuration is unknown or out of range";
    for (line, named) in [
        ("mailrl.window sliding", ours),
        ("mailrl.per-minute 0", ours),
        // The server's own words: it asks no module about a name that none has registered.
        ("mailrl.per-hour 5", "Module Configuration detected"),
    ] {
        let log = RedisServer::builder()
            .configuration(&format!("{}{line}\n", load_line("")))
            .try_start()
            .expect_err(line);
        assert!(log.contains(named), "{line}:\n{log}");
    }
}

#[test]
fn what_config_set_changes_counts_from_the_very_next_call() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "30");
    redis.allowed(KEY, "30");

    redis.ask::<()>("CONFIG SET mailrl.per-minute 2");
    assert_eq!(redis.denied(KEY, "1").0, "minute");
    redis.ask::<()>("CONFIG SET mailrl.per-minute 3");
    assert_eq!(redis.reserve(KEY, "1").minute_left, 0);
    redis.ask::<()>("CONFIG SET mailrl.per-minute 100 mailrl.recipients-per-day 62");
    assert_eq!(redis.denied(KEY, "2").0, "day");
    let answer = redis.reserve(KEY, "1");
    assert_eq!((answer.minute_left, answer.day_left), (96, 0));
    are(&mut redis, "100", "62", "calendar");
}

#[test]
fn a_limit_below_what_is_used_leaves_nothing_and_not_less() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for _ in 0..10 {
        redis.allowed(KEY, "10");
    }
    redis.ask::<()>("CONFIG SET mailrl.per-minute 4 mailrl.recipients-per-day 40");
    let answer = redis.reserve(KEY, "1");
    assert!(!answer.allowed);
    assert_eq!((answer.minute_left, answer.day_left), (0, 0));
    let status = redis.status(KEY);
    assert_eq!((status.minute.used, status.minute.limit), (10, 4));
    assert_eq!((status.day.used, status.day.limit), (100, 40));
    assert_eq!(redis.status(KEY).minute.room_in_ms, 60_000);
}

#[test]
fn what_was_used_stays_used_when_the_window_kind_changes() {
    let server = RedisServer::at_noon(["per-minute", "3", "recipients-per-day", "30"]);
    let mut redis = server.connection();
    redis.allowed(KEY, "5");
    server.move_clock_ms(20_000);
    redis.allowed(KEY, "6");
    for kind in ["rolling", "calendar", "rolling"] {
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {kind}"));
        assert_eq!(redis.used(KEY), (2, 11), "{kind}");
        assert_eq!(redis.status(KEY).window, kind);
        assert_eq!(redis.denied(KEY, "20").0, "day");
        assert_eq!(redis.used(KEY), (2, 11), "{kind}");
    }
    redis.allowed(KEY, "19");
    assert_eq!(redis.denied(KEY, "1").0, "day");
    // All of it as of the switch: a rolling minute and a rolling day from then on.
    server.move_clock_ms(60_999);
    assert_eq!(redis.used(KEY), (3, 30));
    server.move_clock_ms(1);
    assert_eq!(redis.used(KEY), (0, 30));
    server.move_clock_ms(86_400_000);
    assert_eq!(redis.used(KEY), (0, 30));
    server.move_clock_ms(300_000);
    assert_eq!(redis.used(KEY), (0, 0));
}

#[test]
fn a_wrong_value_is_refused_and_changes_nothing() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    for words in [
        "mailrl.per-minute 0",
        "mailrl.per-minute -1",
        "mailrl.per-minute 4294967296",
        "mailrl.per-minute abc",
        "mailrl.per-minute 1.5",
        "mailrl.recipients-per-day 0",
        "mailrl.recipients-per-day 99999999999999999999",
        "mailrl.window sliding",
        "mailrl.window 1",
        "mailrl.pacing 1",
        "mailrl.pacing maybe",
        "mailrl.bulk-share 0",
        "mailrl.bulk-share 101",
        "mailrl.per-hour 5",
        "mailrl.recipients-per-day 50 mailrl.per-minute 0",
    ] {
        redis.refusal(&format!("CONFIG SET {words}"));
        are(&mut redis, "25", "9000", "calendar");
    }
}

#[test]
fn config_rewrite_keeps_what_was_set_over_a_restart() {
    let mut server = RedisServer::builder()
        .configuration(&load_line("recipients-per-day 60"))
        .start();
    let mut redis = server.connection();
    redis.ask::<()>("CONFIG SET mailrl.per-minute 11 mailrl.window rolling");
    redis.ask::<()>("CONFIG REWRITE");
    server.shut_down(false);
    server.restart();
    are(&mut server.connection(), "11", "60", "rolling");
}
