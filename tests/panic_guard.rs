//! A fault of the module's own is an error reply, and the server lives.

use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

#[test]
fn a_panic_becomes_an_error_reply_and_is_told_in_the_log() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    if redis.ask::<Vec<redis::Value>>("COMMAND INFO mailrl.panic")[0] == redis::Value::Nil {
        // A release build (`MAILRL_MODULE`) has no command that panics.
        return;
    }
    redis.allowed(KEY, "1");
    for faults in 1..=3 {
        let error = redis.refusal("MAILRL.PANIC %s%n");
        assert!(error.starts_with("ERR mailrl met a fault of its own"), "{error}");
        assert_eq!(redis.counter("mailrl", "mailrl_errors"), faults);
    }
    redis.allowed(KEY, "1");
    assert_eq!(redis.used(KEY), (2, 2));
    let log = server.log();
    assert!(log.contains("mailrl panicked at src/commands/panic.rs"), "{log}");
    assert!(log.contains("asked to, for %s%n"), "{log}");
}
