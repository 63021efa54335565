//! A mailbox with the operator's limits does not expire; without them it does again. Replicas and
//! the append-only file come to the same.

use redis::Connection;
use test_support::{Calls, NOON_MS, Overrides, RedisServer, Words};

const KEY: &str = "mailrl:orders@example.com";
const HOUR_MS: u64 = 3_600_000;
const NEVER: i64 = -1;
const NO_KEY: i64 = -2;

fn expires_at(redis: &mut Connection) -> i64 {
    redis.snapshot(KEY.as_bytes()).expires_at
}

/// How far ahead the expiry is, in ms.
fn expires_in(redis: &mut Connection) -> u64 {
    let at = u64::try_from(expires_at(redis)).expect("it expires");
    at - redis.now_ms()
}

fn with_file<const N: usize>(arguments: [&str; N]) -> RedisServer {
    let server = RedisServer::builder()
        .module([])
        .with_clock()
        .arguments(["--appendonly", "yes", "--appendfsync", "always"])
        .arguments(["--repl-diskless-sync-delay", "0"])
        .arguments(["--repl-ping-replica-period", "3600"])
        .arguments(arguments)
        .start();
    server.stop_clock_at_ms(NOON_MS);
    server
}

/// The commands appended after the first so many, as texts without their values.
fn commands(server: &RedisServer, after: usize) -> Vec<String> {
    let text = |words: &Words| {
        let name = String::from_utf8_lossy(&words[0]).to_ascii_uppercase();
        let option = words.get(3).filter(|_| name == "SET");
        let option = option.map(|word| format!(" {}", String::from_utf8_lossy(word).to_ascii_uppercase()));
        name + &option.unwrap_or_default()
    };
    let all: Vec<_> = server.appended_commands().iter().map(text).collect();
    let around = ["MULTI", "EXEC", "SELECT"];
    let rest = all[after..]
        .iter()
        .filter(|name| !around.contains(&name.as_str()));
    rest.cloned().collect()
}

#[test]
fn a_mailbox_without_state_gets_some_only_if_there_is_something_to_keep() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        redis.limits(KEY, "");
        redis.limits(KEY, "RESET");
        assert_eq!(expires_at(&mut redis), NO_KEY);
        redis.limits(KEY, "PERMINUTE 3");
        assert_eq!(expires_at(&mut redis), NEVER);
        assert_eq!(redis.used(KEY), (0, 0));
        assert_eq!(redis.status(KEY).open, 0);
        assert_eq!(redis.reserve(KEY, "5").minute_left, 2, "{kind}");
        assert_eq!(expires_at(&mut redis), NEVER);
    }
}

#[test]
fn no_call_gives_an_expiry_to_a_mailbox_with_overrides() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        redis.allowed(KEY, "1");
        assert_eq!(expires_in(&mut redis), 26 * HOUR_MS);
        redis.limits(KEY, "PERMINUTE 100");
        assert_eq!(expires_at(&mut redis), NEVER);
        for _ in 0..30 {
            let (released, committed) = (redis.allowed(KEY, "1"), redis.allowed(KEY, "1"));
            assert_eq!(expires_at(&mut redis), NEVER, "{kind}");
            redis.release(KEY, &released);
            redis.commit(KEY, &committed);
            redis.pause(KEY, 1_000);
            redis.denied(KEY, "1");
            redis.pause(KEY, 0);
            redis.limits(KEY, "");
            redis.status(KEY);
            assert_eq!(expires_at(&mut redis), NEVER, "{kind}");
            server.move_clock_ms(HOUR_MS.cast_signed());
        }
        // Somebody else's expiry is taken off by the next write.
        redis.ask::<u8>(&format!("PEXPIRE {KEY} 5000000"));
        redis.allowed(KEY, "1");
        assert_eq!(expires_at(&mut redis), NEVER);
        redis.ask::<u8>(&format!("PEXPIRE {KEY} 5000000"));
        redis.pause(KEY, 1);
        assert_eq!(expires_at(&mut redis), NEVER);
        redis.ask::<u8>(&format!("PEXPIRE {KEY} 5000000"));
        redis.limits(KEY, "PERDAY 700");
        assert_eq!(expires_at(&mut redis), NEVER);
    }
}

#[test]
fn it_is_kept_while_nobody_sends_and_expires_again_once_they_are_dropped() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.limits(KEY, "PERMINUTE 3");
    server.move_clock_ms((1_000 * HOUR_MS).cast_signed());
    assert_eq!(redis.status(KEY).minute.limit, 3);
    assert_eq!(redis.reserve(KEY, "1").minute_left, 2);
    redis.limits(KEY, "RESET");
    let ahead = expires_in(&mut redis);
    assert!((25 * HOUR_MS..=26 * HOUR_MS).contains(&ahead), "{ahead}");
    assert_eq!(redis.used(KEY), (1, 1));
    redis.allowed(KEY, "1");
    server.move_clock_ms(26 * HOUR_MS.cast_signed() + 1);
    assert_eq!(expires_at(&mut redis), NO_KEY);
}

#[test]
fn a_call_that_sets_what_is_set_already_leaves_the_expiry_alone() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    server.move_clock_ms(HOUR_MS.cast_signed());
    for words in ["", "RESET"] {
        redis.limits(KEY, words);
        assert_eq!(expires_in(&mut redis), 25 * HOUR_MS);
    }
}

#[test]
fn overrides_are_replicated_as_plain_commands() {
    let server = with_file([]);
    let mut redis = server.connection();
    let mut seen = 0;
    let mut appended = |words: &str, redis: &mut Connection| {
        redis.ask::<redis::Value>(words);
        let new = commands(&server, seen);
        seen = server.appended_commands().len();
        new
    };
    let limits = |rest: &str| format!("MAILRL.LIMITS {KEY} {rest}");
    let reserve = format!("MAILRL.RESERVE {KEY} 1");
    // A new value comes without an expiry, one in use loses its own.
    assert_eq!(appended(&limits("PERMINUTE 9"), &mut redis), ["SET"]);
    assert_eq!(appended(&limits("PERMINUTE 9"), &mut redis), [""; 0]);
    assert_eq!(appended(&limits("PERDAY 9"), &mut redis), ["SETRANGE"]);
    assert_eq!(appended(&reserve, &mut redis), ["SETRANGE"]);
    assert_eq!(appended(&limits("RESET"), &mut redis), ["SETRANGE", "PEXPIREAT"]);
    assert_eq!(appended(&limits("RESET"), &mut redis), [""; 0]);
    assert_eq!(
        appended(&limits("CONCURRENT 9"), &mut redis),
        ["SETRANGE", "PERSIST"]
    );
    // All of a value, after a switch of its kind.
    redis.ask::<()>("CONFIG SET mailrl.window rolling");
    assert_eq!(appended(&reserve, &mut redis), ["SET"]);
    redis.ask::<()>("CONFIG SET mailrl.window calendar");
    assert_eq!(appended(&limits("RESET"), &mut redis), ["SET PXAT"]);
    redis.ask::<()>("CONFIG SET mailrl.window rolling");
    assert_eq!(appended(&limits("PERDAY 9"), &mut redis), ["SET"]);
}

#[test]
fn a_replica_has_the_overrides_and_no_expiry_and_holds_to_them_once_promoted() {
    for first in ["", "PERDAY 500"] {
        let mut master = with_file([]);
        let replica = with_file(["--replicaof", &format!("127.0.0.1 {}", master.port())]);
        master.wait_for_replica(&replica);
        let (mut redis, mut other) = (master.connection(), replica.connection());
        redis.limits(KEY, first);
        redis.allowed(KEY, "1");
        redis.limits(KEY, "PERMINUTE 2 CONCURRENT 7");
        let released = redis.allowed(KEY, "1");
        redis.pause(KEY, 3);
        master.wait_for_replica(&replica);
        assert_eq!(other.status(KEY), redis.status(KEY));
        assert_eq!(expires_at(&mut other), NEVER);
        redis.release(KEY, &released);
        redis.limits(KEY, "RESET");
        master.wait_for_replica(&replica);
        assert_eq!(other.status(KEY).overrides, Overrides::default());
        assert_eq!(expires_at(&mut other), expires_at(&mut redis));
        assert_eq!(expires_in(&mut other), 26 * HOUR_MS);
        redis.limits(KEY, "PERMINUTE 1");
        master.wait_for_replica(&replica);
        master.kill();
        other.ask::<()>("REPLICAOF NO ONE");
        other.pause(KEY, 0);
        assert_eq!(expires_at(&mut other), NEVER);
        assert_eq!(other.denied(KEY, "1").0, "minute");
    }
}

#[test]
fn a_restart_from_the_append_only_file_keeps_the_overrides_and_no_expiry() {
    for kind in ["calendar", "rolling"] {
        let mut server = with_file([]);
        let mut redis = server.connection();
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {kind}"));
        redis.allowed(KEY, "4");
        redis.limits(KEY, "PERMINUTE 2 PERDAY 9");
        redis.limits("mailrl:new", "CONCURRENT 1");
        redis.limits("mailrl:reset", "CONCURRENT 1");
        redis.limits("mailrl:reset", "RESET");
        let before = (redis.status(KEY), redis.snapshot(KEY.as_bytes()));
        let of_reset = redis.snapshot(b"mailrl:reset");
        assert!(of_reset.expires_at > 0);
        server.kill();
        server.restart();
        let mut redis = server.connection();
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {kind}"));
        assert_eq!((redis.status(KEY), redis.snapshot(KEY.as_bytes())), before);
        assert_eq!(expires_at(&mut redis), NEVER);
        assert_eq!(redis.snapshot(b"mailrl:reset"), of_reset);
        redis.allowed(KEY, "1");
        assert_eq!(redis.denied(KEY, "1").0, "minute");
        redis.allowed("mailrl:new", "1");
        assert_eq!(redis.denied("mailrl:new", "1").0, "concurrent");
    }
}
