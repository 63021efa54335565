//! Counters outlive restarts, copies, and a Redis that comes back without the module.

use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, Value};
use test_support::{Calls, NOON_MS, RedisServer, Status};

const KEYS: [&str; 3] = ["mailrl:plain", "mailrl:paused", "mailrl:rolling"];

/// A server that is stopped and started again has its clock where it was.
fn server<const N: usize>(arguments: [&str; N]) -> RedisServer {
    let server = RedisServer::builder()
        .module([])
        .with_clock()
        .arguments(arguments)
        .start();
    server.stop_clock_at_ms(NOON_MS);
    server
}

/// Three mailboxes in use; gives a reservation of each that is open.
fn use_all(server: &RedisServer) -> [String; 3] {
    let mut redis = server.connection();
    let ids = KEYS.map(|key| {
        if key == "mailrl:rolling" {
            redis.ask::<()>("CONFIG SET mailrl.window rolling");
        }
        let (released, committed) = (redis.allowed(key, "9"), redis.allowed(key, "6"));
        redis.release(key, &released);
        redis.commit(key, &committed);
        server.move_clock_ms(1_500);
        redis.allowed(key, "5")
    });
    redis.ask::<()>("CONFIG SET mailrl.window calendar");
    redis.pause("mailrl:paused", 30_000);
    ids
}

fn stand(redis: &mut Connection) -> Vec<(Status, Vec<u8>, i64)> {
    let mut stand = |key| {
        let expires_at = redis.snapshot(str::as_bytes(key)).expires_at;
        (redis.status(key), redis.value(key), expires_at)
    };
    KEYS.into_iter().map(&mut stand).collect()
}

/// All is as it was, and the open reservations can still be released, each once.
fn goes_on(server: &RedisServer, before: &[(Status, Vec<u8>, i64)], ids: &[String; 3]) {
    let mut redis = server.connection();
    assert_eq!(stand(&mut redis), before);
    assert_eq!(before[0].0.day.used, 11);
    for (key, id) in KEYS.into_iter().zip(ids) {
        assert!(redis.release(key, id), "{key}");
        assert!(!redis.release(key, id), "{key}");
        assert_eq!(redis.used(key), (1, 6));
    }
    redis.pause("mailrl:paused", 0);
    for key in KEYS {
        redis.allowed(key, "1 PERMINUTE 2 PERDAY 7");
        redis.denied(key, "1 PERMINUTE 2 PERDAY 7");
    }
}

#[test]
fn counters_outlive_a_restart_from_the_rdb_file() {
    let mut server = server([]);
    let ids = use_all(&server);
    let before = stand(&mut server.connection());
    server.shut_down(true);
    server.restart();
    goes_on(&server, &before, &ids);
}

#[test]
fn counters_outlive_a_crash_with_the_append_only_file() {
    let mut server = server(["--appendonly", "yes", "--appendfsync", "always"]);
    let ids = use_all(&server);
    let before = stand(&mut server.connection());
    server.kill();
    server.restart();
    goes_on(&server, &before, &ids);
}

#[test]
fn counters_outlive_a_rewrite_of_the_append_only_file() {
    for preamble in ["yes", "no"] {
        let mut server = server(["--appendonly", "yes", "--aof-use-rdb-preamble", preamble]);
        let mut redis = server.connection();
        redis.allowed("mailrl:plain", "1 LEASE 1");
        redis.ask::<()>("FLUSHALL");
        let ids = use_all(&server);
        redis.ask::<Value>("BGREWRITEAOF");
        let deadline = Instant::now() + Duration::from_secs(20);
        while redis.counter("persistence", "aof_rewrite_in_progress") == 1
            || redis.counter("persistence", "aof_rewrite_scheduled") == 1
        {
            assert!(Instant::now() < deadline, "{}", server.log());
            thread::sleep(Duration::from_millis(10));
        }
        // What comes after the rewrite stands in the next file.
        let id = redis.allowed("mailrl:rolling", "4");
        redis.release("mailrl:rolling", &id);
        let before = stand(&mut redis);
        server.shut_down(false);
        server.restart();
        goes_on(&server, &before, &ids);
    }
}

#[test]
fn a_redis_that_comes_back_without_the_module_comes_back_and_keeps_the_values() {
    for arguments in [["--appendonly", "no"], ["--appendonly", "yes"]] {
        let mut server = server(arguments);
        let ids = use_all(&server);
        let before = stand(&mut server.connection());
        server.shut_down(true);

        server.restart_without_module();
        let mut redis = server.connection();
        let error = redis.refusal("MAILRL.RESERVE mailrl:plain 1");
        assert!(error.contains("unknown command"), "{error}");
        for (key, before) in KEYS.into_iter().zip(&before) {
            assert_eq!(redis.value(key), before.1);
            assert_eq!(redis.ask::<String>(&format!("TYPE {key}")), "string");
        }
        server.shut_down(true);

        server.restart_with_module([]);
        goes_on(&server, &before, &ids);
    }
}

#[test]
fn counters_outlive_a_reload() {
    for reload in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
        let server = server(["--appendonly", "yes"]);
        let ids = use_all(&server);
        let mut redis = server.connection();
        let before = stand(&mut redis);
        redis.ask::<()>(reload);
        goes_on(&server, &before, &ids);
    }
}

#[test]
fn a_mailbox_that_is_renamed_copied_or_restored_elsewhere_keeps_its_state() {
    let server = server([]);
    let [id, ..] = use_all(&server);
    let mut redis = server.connection();
    let before = redis.status("mailrl:plain");
    redis.ask::<()>("RENAME mailrl:plain mailrl:renamed");
    redis.ask::<u8>("COPY mailrl:renamed mailrl:copied");
    let dump = redis.snapshot(b"mailrl:renamed").dump.expect("a value");
    redis::cmd("RESTORE")
        .arg("mailrl:restored")
        .arg(0)
        .arg(dump)
        .exec(&mut redis)
        .expect("a new key");
    for key in ["mailrl:renamed", "mailrl:copied", "mailrl:restored"] {
        assert_eq!(redis.status(key), before, "{key}");
        assert!(redis.release(key, &id), "{key}");
        assert_eq!(redis.used(key), (1, 6), "{key}");
    }
}

#[test]
fn a_mailbox_that_is_migrated_to_another_server_keeps_its_state() {
    let (from, to) = (server([]), server([]));
    let [id, ..] = use_all(&from);
    to.move_clock_ms(4_500);
    let before = from.connection().status("mailrl:plain");
    let migrate = format!("MIGRATE 127.0.0.1 {} mailrl:plain 0 5000", to.port());
    from.connection().ask::<()>(&migrate);
    assert_eq!(from.connection().ask::<u8>("EXISTS mailrl:plain"), 0);
    assert_eq!(to.connection().status("mailrl:plain"), before);
    assert!(to.connection().release("mailrl:plain", &id));
}
