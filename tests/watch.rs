//! Transactions, scripts and caches of clients around the module's commands.

use std::sync::mpsc;
use std::time::Duration;

use redis::{Connection, PushKind, Value};
use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

/// Watches the key, has somebody else do something, and says whether the transaction went through.
fn undisturbed_by(server: &RedisServer, somebody: impl FnOnce(&mut Connection)) -> bool {
    let mut watcher = server.connection();
    watcher.ask::<()>(&format!("WATCH {KEY}"));
    somebody(&mut server.connection());
    watcher.ask::<()>("MULTI");
    watcher.ask::<()>("PING");
    watcher.ask::<Value>("EXEC") != Value::Nil
}

#[test]
fn what_changes_nothing_disturbs_no_watch() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    assert!(undisturbed_by(&server, |other| assert!(
        !other.release(KEY, "1-1")
    )));
    let id = redis.allowed(KEY, "1");
    redis.commit(KEY, &id);
    assert!(undisturbed_by(&server, |other| {
        other.denied(KEY, "1 PERMINUTE 1");
        other.denied(KEY, "1 PERDAY 1");
    }));
    assert!(undisturbed_by(&server, |other| {
        other.refusal(&format!("MAILRL.RESERVE {KEY} 9001"));
        other.refusal(&format!("MAILRL.RESERVE {KEY} 0"));
    }));
    assert!(undisturbed_by(&server, |other| {
        assert!(!other.release(KEY, &id));
        assert!(!other.commit(KEY, &id));
    }));
    assert!(undisturbed_by(&server, |other| {
        other.status(KEY);
        other.limits(KEY, "");
        other.limits(KEY, "RESET");
    }));
    redis.pause(KEY, 10_000);
    assert!(undisturbed_by(&server, |other| {
        other.pause(KEY, 5_000);
        other.denied(KEY, "1");
    }));
    // Nor does what a call finds to mend in the value, while it is denied.
    redis.ask::<()>("CONFIG SET mailrl.window rolling");
    assert!(undisturbed_by(&server, |other| {
        other.denied(KEY, "1");
    }));
    server.move_clock_ms(-5_000);
    assert!(undisturbed_by(&server, |other| assert!(!other.release(KEY, &id))));
}

#[test]
fn what_changes_something_ends_a_watch() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    assert!(!undisturbed_by(&server, |other| {
        other.allowed(KEY, "1");
    }));
    let (released, committed) = (redis.allowed(KEY, "1"), redis.allowed(KEY, "1"));
    assert!(!undisturbed_by(&server, |other| assert!(
        other.release(KEY, &released)
    )));
    assert!(!undisturbed_by(&server, |other| assert!(
        other.commit(KEY, &committed)
    )));
    assert!(!undisturbed_by(&server, |other| {
        other.pause(KEY, 10_000);
    }));
    assert!(!undisturbed_by(&server, |other| {
        other.pause(KEY, 0);
    }));
    assert!(!undisturbed_by(&server, |other| {
        other.limits(KEY, "PERMINUTE 5");
    }));
    assert!(undisturbed_by(&server, |other| {
        other.limits(KEY, "PERMINUTE 5");
    }));
    assert!(!undisturbed_by(&server, |other| {
        other.limits(KEY, "RESET");
    }));
}

#[test]
fn a_denied_reservation_spoils_no_clients_cache_and_an_allowed_one_does() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    let mut reader = server.connection_in_resp3();
    let (sender, pushed) = mpsc::channel();
    reader.set_push_sender(sender);
    reader.ask::<()>("CLIENT TRACKING ON");
    reader.value(KEY);

    let invalidated = |reader: &mut Connection| {
        reader.ask::<()>("PING");
        pushed
            .recv_timeout(Duration::from_millis(20))
            .is_ok_and(|push| push.kind == PushKind::Invalidate)
    };
    redis.denied(KEY, "1 PERMINUTE 1");
    assert!(!redis.release(KEY, "1-1"));
    assert!(!invalidated(&mut reader));
    redis.allowed(KEY, "1");
    assert!(invalidated(&mut reader));
}

#[test]
fn commands_of_a_transaction_count_one_after_the_other() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let (first, second, third, status): (Value, Value, Value, Value) = redis::pipe()
        .atomic()
        .cmd("MAILRL.RESERVE")
        .arg(KEY)
        .arg("2 PERMINUTE 2".split(' ').collect::<Vec<_>>())
        .cmd("MAILRL.RESERVE")
        .arg(KEY)
        .arg("3 PERMINUTE 2".split(' ').collect::<Vec<_>>())
        .cmd("MAILRL.RESERVE")
        .arg(KEY)
        .arg("4 PERMINUTE 2".split(' ').collect::<Vec<_>>())
        .cmd("MAILRL.STATUS")
        .arg(KEY)
        .query(&mut redis)
        .expect("a transaction");
    let allowed = |reply: Value| -> (u8, String, u64, u64, u64, String) {
        redis::from_redis_value(reply).expect("six values")
    };
    assert_eq!(allowed(first).0, 1);
    assert_eq!(allowed(second).0, 1);
    assert_eq!(allowed(third).1, "minute");
    assert!(matches!(status, Value::Array(_)));
    assert_eq!(redis.used(KEY), (2, 5));
}

#[test]
fn a_script_gets_the_same_replies_as_a_caller() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let script = redis::Script::new(
        "local first = redis.call('MAILRL.RESERVE', KEYS[1], ARGV[1], 'PERMINUTE', '3')
         local second = redis.call('mailrl.reserve', KEYS[1], ARGV[1], 'PERMINUTE', '3')
         local back = redis.call('MAILRL.RELEASE', KEYS[1], first[6])
         return {first[1], first[4], second[1], second[2], second[4], second[5], back}",
    );
    let mut run = || -> (u8, u64, u8, String, u64, u64, u8) {
        script
            .key(KEY)
            .arg(10)
            .invoke(&mut redis)
            .expect("six values twice")
    };
    assert_eq!(run(), (1, 2, 1, "ok".into(), 1, 8_980, 1));
    assert_eq!(run(), (1, 1, 1, "ok".into(), 0, 8_970, 1));
    // The first of the third run takes the last message.
    let (first, .., back) = {
        let reply: (u8, u64, u8, String, u64, u64, u8) = script
            .key(KEY)
            .arg(10)
            .invoke(&mut redis)
            .expect("six values twice");
        assert_eq!(reply.3, "minute");
        reply
    };
    assert_eq!((first, back), (1, 1));
    assert_eq!(redis.used(KEY), (2, 20));
}

#[test]
fn a_script_can_catch_an_error() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let error: String = redis::Script::new("return redis.pcall('MAILRL.RESERVE', KEYS[1], '0')['err']")
        .key(KEY)
        .invoke(&mut redis)
        .expect("the error's text");
    assert!(error.contains("recipients must be an integer"), "{error}");
    let error = redis::Script::new("return redis.call('MAILRL.RESERVE', KEYS[1], '9001')")
        .key(KEY)
        .invoke::<Value>(&mut redis)
        .expect_err("too large");
    assert!(error.to_string().contains("never fit"), "{error}");
}

#[test]
fn a_function_can_reserve() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis::cmd("FUNCTION")
        .arg("LOAD")
        .arg(
            "#!lua name=mail
             redis.register_function('reserve', function(keys, args)
                 return redis.call('MAILRL.RESERVE', keys[1], args[1])[4]
             end)",
        )
        .exec(&mut redis)
        .expect("a function");
    assert_eq!(redis.ask::<u64>(&format!("FCALL reserve 1 {KEY} 3")), 24);
    assert_eq!(redis.ask::<u64>(&format!("FCALL reserve 1 {KEY} 3")), 23);
    assert_eq!(redis.used(KEY), (2, 6));
}

#[test]
fn only_a_status_may_be_asked_for_in_a_script_that_reads() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let mut run = |command: &str| {
        redis::cmd("EVAL_RO")
            .arg(format!("return redis.call({command})"))
            .arg(1)
            .arg(KEY)
            .query::<Value>(&mut redis)
    };
    assert!(run("'MAILRL.STATUS', KEYS[1]").is_ok());
    let error = run("'MAILRL.RESERVE', KEYS[1], '1'").expect_err("a write");
    assert!(
        error.to_string().contains("Write commands are not allowed"),
        "{error}"
    );
}
