//! Who may call what, and which argument is the key.

use std::collections::HashMap;

use redis::{Connection, Value};
use test_support::{Calls, RedisServer, error_text};

const COMMANDS: [(&str, i64, &[&str]); 6] = [
    ("mailrl.reserve", -3, &["write", "denyoom", "fast", "module"]),
    ("mailrl.release", 3, &["write", "fast", "module"]),
    ("mailrl.commit", 3, &["write", "fast", "module"]),
    ("mailrl.pause", 3, &["write", "fast", "module"]),
    ("mailrl.limits", -2, &["write", "fast", "module"]),
    ("mailrl.status", 2, &["readonly", "fast", "module"]),
];

fn login(server: &RedisServer, rules: &str) -> Connection {
    let mut admin = server.connection();
    admin.ask::<()>(&format!("ACL SETUSER mailer reset on >secret {rules}"));
    let mut user = server.connection();
    user.ask::<()>("AUTH mailer secret");
    user
}

#[test]
fn a_user_reserves_under_its_own_key_pattern_only() {
    let server = RedisServer::at_noon([]);
    let rules = "~mailrl:* +mailrl.reserve +mailrl.release +mailrl.commit +mailrl.pause +mailrl.limits \
                 +mailrl.status";
    let mut user = login(&server, rules);
    let id = user.allowed("mailrl:a", "1");
    assert!(user.release("mailrl:a", &id));
    user.pause("mailrl:a", 0);
    user.limits("mailrl:a", "");
    user.status("mailrl:a");
    for words in [
        "MAILRL.RESERVE other:a 1",
        "MAILRL.RELEASE other:a 1-1",
        "MAILRL.COMMIT other:a 1-1",
        "MAILRL.PAUSE other:a 1",
        "MAILRL.LIMITS other:a",
        "MAILRL.LIMITS other:a PERMINUTE 5",
        "MAILRL.LIMITS other:a RESET",
        "MAILRL.STATUS other:a",
        // No words after the key make it another key.
        "MAILRL.RESERVE other:mailrl:a 1 PERMINUTE 5",
        "GET mailrl:a",
        "DEL mailrl:a",
        "SET mailrl:a x",
        "CONFIG GET *",
        "KEYS *",
    ] {
        let error = user.refusal(words);
        assert!(error.starts_with("NOPERM "), "{words}: {error}");
    }
    assert_eq!(server.connection().ask::<Vec<String>>("KEYS *"), ["mailrl:a"]);
}

#[test]
fn a_user_who_may_only_read_sees_the_status_and_reserves_nothing() {
    let server = RedisServer::at_noon([]);
    server.connection().allowed("mailrl:a", "1");
    let mut user = login(&server, "%R~mailrl:* +mailrl.reserve +mailrl.status");
    assert_eq!(user.used("mailrl:a"), (1, 1));
    let error = user.refusal("MAILRL.RESERVE mailrl:a 1");
    assert!(error.starts_with("NOPERM "), "{error}");
    // To reserve is to read as well: the reply tells what is left.
    let mut user = login(&server, "%W~mailrl:* +mailrl.reserve");
    assert!(user.refusal("MAILRL.RESERVE mailrl:a 1").starts_with("NOPERM "));
}

#[test]
fn a_user_without_the_command_may_not_call_it() {
    let server = RedisServer::at_noon([]);
    let mut user = login(&server, "~* +mailrl.status");
    user.status("mailrl:a");
    for words in [
        "MAILRL.RESERVE mailrl:a 1",
        "MAILRL.RELEASE mailrl:a 1-1",
        "MAILRL.COMMIT mailrl:a 1-1",
        "MAILRL.PAUSE mailrl:a 1",
        "MAILRL.LIMITS mailrl:a",
        "MAILRL.LIMITS mailrl:a PERMINUTE 5",
    ] {
        assert!(user.refusal(words).starts_with("NOPERM "), "{words}");
    }
}

#[test]
fn a_script_does_not_go_round_a_key_pattern() {
    let server = RedisServer::at_noon([]);
    let mut user = login(&server, "~mailrl:* +@scripting +mailrl.reserve");
    let mut run = |key: &str| {
        redis::cmd("EVAL")
            .arg("return redis.call('MAILRL.RESERVE', ARGV[1], '1')[1]")
            .arg(&["0", key])
            .query::<u8>(&mut user)
    };
    assert_eq!(run("mailrl:a").expect("allowed"), 1);
    let error = error_text(&run("other:a").expect_err("not allowed"));
    // Redis 7 and 8 have different words for it.
    let refused = error.contains("can't access") || error.contains("ACL failure in script");
    assert!(refused, "{error}");
}

/// Makes a map of a reply that lists names and values in turn.
fn map(value: Value) -> HashMap<String, Value> {
    redis::from_redis_value(value).expect("names and values")
}

#[test]
fn each_command_says_what_it_may_do_and_where_its_key_stands() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for (name, arity, flags) in COMMANDS {
        let mut info: Vec<Value> = redis.ask(&format!("COMMAND INFO {name}"));
        let info: Vec<Value> = redis::from_redis_value(info.remove(0)).expect("a list");
        assert_eq!(info[0], Value::BulkString(name.into()));
        assert_eq!(info[1], Value::Int(arity), "{name}");
        let mut found: Vec<String> = redis::from_redis_value(info[2].clone()).expect("flags");
        let mut wanted: Vec<String> = flags.iter().map(ToString::to_string).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{name}");
        let positions: Vec<i64> = info[3..6]
            .iter()
            .map(|number| redis::from_redis_value(number.clone()).expect("a number"))
            .collect();
        assert_eq!(positions, [1, 1, 1], "{name}");

        let mut specs: Vec<Value> = redis::from_redis_value(info[8].clone()).expect("key specs");
        assert_eq!(specs.len(), 1, "{name}");
        let mut spec = map(specs.remove(0));
        let mut found: Vec<String> =
            redis::from_redis_value(spec.remove("flags").expect("flags")).expect("names");
        found.sort();
        let wanted: &[&str] = if name == "mailrl.status" {
            &["RO", "access"]
        } else {
            &["RW", "access", "update"]
        };
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn a_client_library_finds_the_key_of_each_command() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for words in [
        "mailrl.reserve mailrl:a 1 PERMINUTE 5 LEASE 7 BULK",
        "mailrl.release mailrl:a 1-1",
        "mailrl.commit mailrl:a 1-1",
        "mailrl.pause mailrl:a 5",
        "mailrl.limits mailrl:a",
        "mailrl.limits mailrl:a PERMINUTE 5",
        "mailrl.limits mailrl:a RESET",
        "mailrl.status mailrl:a",
    ] {
        let keys: Vec<String> = redis.ask(&format!("COMMAND GETKEYS {words}"));
        assert_eq!(keys, ["mailrl:a"], "{words}");
    }
}
