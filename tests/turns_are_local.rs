//! Turns are advice of one server: no replica, file, transaction or cache hears of them, and all goes
//! on where they are lost.

use redis::Connection;
use test_support::{Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
/// The part of a value that turns stand in.
const TURNS: std::ops::Range<usize> = 32..128;

fn server<const N: usize>(arguments: [&str; N]) -> RedisServer {
    let server = RedisServer::builder()
        .module([])
        .with_clock()
        .arguments(["--appendonly", "yes", "--appendfsync", "no"])
        .arguments(["--repl-diskless-sync-delay", "0"])
        .arguments(["--repl-ping-replica-period", "3600"])
        .arguments(arguments)
        .start();
    server.stop_clock_at_ms(NOON_MS);
    server
}

fn replica_of(master: &RedisServer) -> RedisServer {
    let replica = server(["--replicaof", &format!("127.0.0.1 {}", master.port())]);
    master.wait_for_replica(&replica);
    replica
}

/// Fills minute and day, and has somebody queue up for each.
fn queue_up(redis: &mut Connection) -> Vec<u64> {
    for _ in 0..25 {
        redis.allowed(KEY, "1");
    }
    let denied = ["1", "1 BULK", "2 PERDAY 26", "2 PERDAY 26 BULK"].map(|arguments| {
        let waits: Vec<_> = (0..5).map(|_| redis.denied(KEY, arguments).1).collect();
        assert!(waits[0] < waits[1] && waits.is_sorted(), "{waits:?}");
        waits
    });
    denied.concat()
}

fn has_turns(redis: &mut Connection) -> bool {
    redis.value(KEY)[TURNS].iter().any(|&byte| byte != 0)
}

#[test]
fn a_denied_call_changes_nothing_but_turns() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for _ in 0..25 {
        redis.allowed(KEY, "1");
    }
    assert!(!has_turns(&mut redis));
    let before = redis.value(KEY);
    let expires_at = redis.snapshot(KEY.as_bytes()).expires_at;
    for arguments in ["1", "1 BULK", "2 PERDAY 26", "2 PERDAY 26 BULK"] {
        let mut value = redis.value(KEY);
        redis.denied(KEY, arguments);
        let after = redis.value(KEY);
        assert_ne!(after, value, "{arguments} took a turn");
        value[TURNS].fill(0);
        assert_eq!(value, before, "{arguments}");
        assert_eq!(redis.snapshot(KEY.as_bytes()).expires_at, expires_at);
    }
}

#[test]
fn a_denied_call_is_neither_written_nor_replicated() {
    let server = server([]);
    let replica = replica_of(&server);
    let mut redis = server.connection();
    for _ in 0..25 {
        redis.allowed(KEY, "1");
    }
    let written = |redis: &mut Connection| {
        let dirty = redis.counter("persistence", "rdb_changes_since_last_save");
        let commands = server.appended_commands().len();
        let sent = redis.counter("replication", "master_repl_offset");
        (server.appended_len(), commands, dirty, sent)
    };
    server.wait_for_replica(&replica);
    let before = written(&mut redis);
    for _ in 0..200 {
        for arguments in ["1", "1 BULK", "2 PERDAY 26", "2 PERDAY 26 BULK"] {
            redis.denied(KEY, arguments);
        }
    }
    redis.pause(KEY, 0);
    assert!(has_turns(&mut redis));
    assert_eq!(written(&mut redis), before);
    assert!(!has_turns(&mut replica.connection()));
}

#[test]
fn a_denied_call_disturbs_no_watch() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    queue_up(&mut redis);
    let mut watcher = server.connection();
    watcher.ask::<()>(&format!("WATCH {KEY}"));
    let before = redis.value(KEY);
    for arguments in ["1", "1 BULK", "2 PERDAY 26"] {
        redis.denied(KEY, arguments);
    }
    assert_ne!(redis.value(KEY), before);
    watcher.ask::<()>("MULTI");
    watcher.ask::<()>("PING");
    assert_ne!(watcher.ask::<redis::Value>("EXEC"), redis::Value::Nil);
}

#[test]
fn an_allowed_call_sends_no_turns_along() {
    for kind in ["calendar", "rolling"] {
        let server = server([]);
        let mut redis = server.connection();
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {kind}"));
        queue_up(&mut redis);
        let before = server.appended_commands().len();
        server.move_clock_ms(63_000);
        let id = redis.allowed(KEY, "1");
        redis.commit(KEY, &id);
        redis.pause(KEY, 5);
        assert!(has_turns(&mut redis));
        for words in &server.appended_commands()[before..] {
            if words[0].eq_ignore_ascii_case(b"SETRANGE") {
                let offset: usize = std::str::from_utf8(&words[2])
                    .expect("a number")
                    .parse()
                    .expect("one");
                let end = offset + words[3].len();
                assert!(
                    end <= TURNS.start || offset >= TURNS.end,
                    "{kind}: {offset}..{end}"
                );
            }
        }
    }
}

#[test]
fn a_restart_from_the_append_only_file_keeps_the_counts_and_begins_a_new_queue() {
    let mut server = server(["--appendfsync", "always"]);
    let mut redis = server.connection();
    let waits = queue_up(&mut redis);
    let used = redis.used(KEY);
    server.kill();
    server.restart();
    let mut redis = server.connection();
    assert!(!has_turns(&mut redis));
    assert_eq!(redis.used(KEY), used);
    let again: Vec<_> = (0..5).map(|_| redis.denied(KEY, "1").1).collect();
    assert_eq!(again, waits[..5]);
    server.move_clock_ms(again[4].cast_signed());
    redis.allowed(KEY, "1");
}

#[test]
fn a_replica_that_is_promoted_begins_a_new_queue() {
    let mut master = server([]);
    let replica = replica_of(&master);
    let mut redis = master.connection();
    let waits = queue_up(&mut redis);
    master.wait_for_replica(&replica);
    let used = redis.used(KEY);
    master.kill();

    let mut redis = replica.connection();
    assert!(!has_turns(&mut redis));
    redis.ask::<()>("REPLICAOF NO ONE");
    assert_eq!(redis.used(KEY), used);
    let again: Vec<_> = (0..5).map(|_| redis.denied(KEY, "1").1).collect();
    assert_eq!(again, waits[..5]);
}

#[test]
fn a_queue_that_is_lost_lets_no_more_through() {
    let server = RedisServer::at_noon(["per-minute", "5"]);
    let mut redis = server.connection();
    for minute in 1..=4 {
        for _ in 0..5 {
            redis.allowed(KEY, "1");
        }
        for _ in 0..20 {
            redis.denied(KEY, "1");
        }
        let zeros = "\0".repeat(TURNS.len());
        redis::cmd("SETRANGE")
            .arg(KEY)
            .arg(TURNS.start)
            .arg(zeros)
            .exec(&mut redis)
            .expect("a string");
        assert_eq!(redis.denied(KEY, "1").1, 60_000);
        assert_eq!(redis.used(KEY).1, 5 * minute);
        server.move_clock_ms(60_000);
    }
}
