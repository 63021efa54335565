//! The module is taken out of a running server, and put back in.

use redis::Connection;
use test_support::{Calls, NOON_MS, RedisServer, module_path};

const KEY: &str = "mailrl:orders@example.com";

/// A server with the module in it, out of which it may be taken.
fn server<const N: usize>(arguments: [&str; N]) -> RedisServer {
    let builder = RedisServer::builder().module(arguments).with_clock();
    let server = builder.arguments(["--enable-module-command", "yes"]).start();
    server.stop_clock_at_ms(NOON_MS);
    server
}

fn load(redis: &mut Connection, arguments: &str) {
    let path = module_path();
    redis.ask::<()>(format!("MODULE LOAD {} {arguments}", path.display()).trim_end());
}

#[test]
fn mailboxes_outlive_the_module_and_go_on_when_it_is_back() {
    for kind in ["calendar", "rolling"] {
        let server = server(["window", kind]);
        let mut redis = server.connection();
        redis.allowed(KEY, "3");
        let id = redis.allowed(KEY, "4");
        for round in 1..=3 {
            let before = (redis.status(KEY), redis.snapshot(KEY.as_bytes()));
            redis.ask::<()>("MODULE UNLOAD mailrl");
            let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 1"));
            assert!(error.contains("unknown command"), "{error}");
            assert!(
                !redis.ask::<String>("INFO everything").contains("mailrl_"),
                "{kind}"
            );
            let settings: Vec<String> = redis.ask("CONFIG GET mailrl.*");
            assert_eq!(settings, [""; 0]);
            assert_eq!(redis.snapshot(KEY.as_bytes()), before.1, "{kind}");

            load(&mut redis, &format!("window {kind}"));
            assert_eq!((redis.status(KEY), redis.snapshot(KEY.as_bytes())), before);
            redis.allowed(KEY, &format!("1 PERMINUTE {}", round + 2));
        }
        assert!(redis.release(KEY, &id), "{kind}");
        assert_eq!(redis.used(KEY), (4, 6), "{kind}");
        // Its counters begin anew.
        assert_eq!(redis.counter("mailrl", "mailrl_released"), 1);
        assert_eq!(redis.counter("mailrl", "mailrl_allowed"), 1);
    }
}

#[test]
fn a_module_that_is_put_back_takes_the_arguments_that_it_is_given_then() {
    let server = server(["per-minute", "7"]);
    let mut redis = server.connection();
    redis.ask::<()>("CONFIG SET mailrl.per-minute 8");
    redis.ask::<()>("MODULE UNLOAD mailrl");
    load(&mut redis, "");
    assert_eq!(redis.limits(KEY, "").1, (25, 9_000));
    redis.ask::<()>("MODULE UNLOAD mailrl");
    load(&mut redis, "per-minute 9");
    assert_eq!(redis.limits(KEY, "").1, (9, 9_000));
}
