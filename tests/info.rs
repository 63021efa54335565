//! What the module tells about itself: `INFO mailrl` and `COMMAND DOCS`.

use std::collections::HashMap;

use redis::{Connection, Value};
use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

fn field(redis: &mut Connection, name: &str) -> String {
    let info: String = redis.ask("INFO mailrl");
    let value = info.lines().find_map(|line| {
        line.strip_prefix("mailrl_")?
            .strip_prefix(name)?
            .strip_prefix(':')
    });
    value.unwrap_or_else(|| panic!("no {name} in {info}")).to_owned()
}

#[test]
fn each_outcome_has_a_counter_of_its_own() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let names = [
        "allowed",
        "denied_minute",
        "denied_day",
        "denied_concurrent",
        "denied_paused",
        "too_large",
        "released",
        "committed",
        "paused",
        "errors",
    ];
    let mut expected: HashMap<&str, u64> = names.iter().map(|&name| (name, 0)).collect();
    let mut grows = |redis: &mut Connection, grown: &[&'static str]| {
        for name in grown {
            *expected.entry(name).or_default() += 1;
        }
        for (name, count) in &expected {
            let found = redis.counter("mailrl", &format!("mailrl_{name}"));
            assert_eq!(found, *count, "{name} after {grown:?}");
        }
    };
    grows(&mut redis, &[]);
    let first = redis.allowed(KEY, "1");
    grows(&mut redis, &["allowed"]);
    redis.denied(KEY, "1 PERMINUTE 1");
    grows(&mut redis, &["denied_minute"]);
    redis.denied(KEY, "1 PERDAY 1");
    grows(&mut redis, &["denied_day"]);
    redis.denied(KEY, "1 CONCURRENT 1");
    grows(&mut redis, &["denied_concurrent"]);
    redis.pause(KEY, 1_000);
    grows(&mut redis, &["paused"]);
    redis.denied(KEY, "1");
    grows(&mut redis, &["denied_paused"]);
    // A pause that is over already by a longer one is none.
    redis.pause(KEY, 1);
    grows(&mut redis, &[]);
    redis.refusal(&format!("MAILRL.RESERVE {KEY} 9001"));
    grows(&mut redis, &["too_large", "errors"]);
    redis.refusal(&format!("MAILRL.RESERVE {KEY} 0"));
    grows(&mut redis, &["errors"]);
    assert!(redis.release(KEY, &first));
    grows(&mut redis, &["released"]);
    assert!(!redis.release(KEY, &first));
    grows(&mut redis, &[]);
    redis.pause(KEY, 0);
    grows(&mut redis, &["paused"]);
    let second = redis.allowed(KEY, "1");
    grows(&mut redis, &["allowed"]);
    assert!(redis.commit(KEY, &second));
    grows(&mut redis, &["committed"]);
    redis.status(KEY);
    grows(&mut redis, &[]);
}

#[test]
fn the_version_the_commit_and_the_limits_in_force_are_shown() {
    let server = RedisServer::with_module(["per-minute", "7", "window", "rolling"]);
    let mut redis = server.connection();
    assert_eq!(field(&mut redis, "version"), env!("CARGO_PKG_VERSION"));
    let commit = field(&mut redis, "commit");
    assert!(
        commit == "unknown" || commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{commit}"
    );
    redis.ask::<()>("CONFIG SET mailrl.recipients-per-day 77");
    assert_eq!(field(&mut redis, "window"), "rolling");
    assert_eq!(field(&mut redis, "per_minute"), "7");
    assert_eq!(field(&mut redis, "recipients_per_day"), "77");
}

#[test]
fn a_policy_that_may_evict_counters_is_warned_of() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    assert_eq!(field(&mut redis, "warning"), "");
    for policy in ["allkeys-lru", "volatile-ttl"] {
        redis.ask::<()>(&format!("CONFIG SET maxmemory-policy {policy}"));
        let warning = field(&mut redis, "warning");
        assert!(
            warning.contains(policy) && warning.contains("noeviction"),
            "{warning}"
        );
    }
    redis.ask::<()>("CONFIG SET maxmemory-policy noeviction");
    assert_eq!(field(&mut redis, "warning"), "");
}

#[test]
fn all_of_info_holds_the_modules_part() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    for section in ["everything", "modules"] {
        let info: String = redis.ask(&format!("INFO {section}"));
        assert!(info.contains("mailrl_allowed:0"), "{section}: {info}");
    }
}

/// Makes a map of a reply that lists names and values in turn.
fn map(value: Value) -> HashMap<String, Value> {
    redis::from_redis_value(value).expect("names and values")
}

fn text(map: &mut HashMap<String, Value>, name: &str) -> String {
    redis::from_redis_value(map.remove(name).unwrap_or_else(|| panic!("no {name}"))).expect("a text")
}

#[test]
fn each_command_is_documented_with_all_its_arguments() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    let arguments: [(&str, &[&str]); 6] = [
        (
            "mailrl.reserve",
            &[
                "key",
                "recipients",
                "PERMINUTE messages",
                "PERDAY recipients",
                "CONCURRENT reservations",
                "LEASE milliseconds",
                "BULK bulk",
            ],
        ),
        ("mailrl.release", &["key", "reservation"]),
        ("mailrl.commit", &["key", "reservation"]),
        ("mailrl.pause", &["key", "milliseconds"]),
        (
            "mailrl.limits",
            &[
                "key",
                "PERMINUTE messages",
                "PERDAY recipients",
                "CONCURRENT reservations",
                "RESET reset",
            ],
        ),
        ("mailrl.status", &["key"]),
    ];
    for (name, arguments) in arguments {
        let mut docs = map(redis.ask(&format!("COMMAND DOCS {name}")));
        let mut docs = map(docs.remove(name).unwrap_or_else(|| panic!("no {name}")));
        let summary = text(&mut docs, "summary");
        assert!(summary.len() > 20 && !summary.ends_with('.'), "{name}: {summary}");
        assert!(text(&mut docs, "complexity").starts_with("O("), "{name}");
        assert_eq!(text(&mut docs, "since"), env!("CARGO_PKG_VERSION"));
        assert_eq!(text(&mut docs, "module"), "mailrl");

        let listed: Vec<Value> =
            redis::from_redis_value(docs.remove("arguments").expect("arguments")).expect("a list");
        let listed: Vec<String> = listed
            .into_iter()
            .map(|argument| {
                let mut argument = map(argument);
                let name = text(&mut argument, "name");
                let Some(token) = argument.remove("token") else {
                    assert!(!argument.contains_key("flags"), "{name} must be given");
                    return name;
                };
                let flags: Vec<String> =
                    redis::from_redis_value(argument.remove("flags").expect("flags")).expect("names");
                assert_eq!(flags, ["optional"]);
                format!(
                    "{} {name}",
                    redis::from_redis_value::<String>(token).expect("a word")
                )
            })
            .collect();
        assert_eq!(listed, arguments, "{name}");
    }
}
