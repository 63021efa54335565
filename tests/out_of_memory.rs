//! A server that is full: what still works where nothing may be evicted, and what is lost where it may.

use redis::Connection;
use test_support::{Calls, RedisServer};

/// Reserves in one new mailbox after the other until the server refuses; gives the key and the
/// reservation of each.
fn fill(redis: &mut Connection) -> Vec<(String, String)> {
    let used = redis.counter("memory", "used_memory");
    redis.ask::<()>(&format!("CONFIG SET maxmemory {}", used + 1_000_000));
    let mut made = Vec::new();
    loop {
        let key = format!("mailrl:{}@example.com", made.len());
        let reply = redis::cmd("MAILRL.RESERVE").arg(&key).arg(3).query(redis);
        match reply {
            Ok((1, _, _, _, _, reservation)) => made.push((key, reservation)),
            Ok::<(u8, String, u64, u64, u64, String), _>(denied) => panic!("{denied:?}"),
            Err(error) => {
                assert_eq!(error.code(), Some("OOM"), "{error}");
                return made;
            }
        }
    }
}

#[test]
fn a_full_server_makes_no_reservation_and_ends_all_that_are_open() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        redis.ask::<()>("CONFIG SET maxmemory-policy noeviction");
        let made = fill(&mut redis);
        assert!(made.len() > 100, "{kind}: {}", made.len());
        for (nth, (key, reservation)) in made.iter().enumerate() {
            let ended = if nth % 2 == 0 {
                redis.release(key, reservation)
            } else {
                redis.commit(key, reservation)
            };
            assert!(ended, "{kind}: {key}");
            let used = if nth % 2 == 0 { (0, 0) } else { (1, 3) };
            assert_eq!(redis.used(key), used, "{kind}: {key}");
        }
        // Neither a mailbox with state nor one without can reserve before there is room again.
        for key in ["mailrl:0@example.com", "mailrl:new@example.com"] {
            let error = redis.refusal(&format!("MAILRL.RESERVE {key} 1"));
            assert!(error.starts_with("OOM "), "{error}");
        }
        assert_eq!(redis.counter("stats", "evicted_keys"), 0);
        redis.ask::<()>("CONFIG SET maxmemory 0");
        redis.allowed("mailrl:0@example.com", "1");
    }
}

#[test]
fn a_server_that_evicts_forgets_budgets_and_warns_of_it() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let used = redis.counter("memory", "used_memory");
    redis.ask::<()>("CONFIG SET maxmemory-policy allkeys-lru");
    redis.ask::<()>(&format!("CONFIG SET maxmemory {}", used + 1_000_000));
    for nth in 0..10_000 {
        redis.allowed(&format!("mailrl:{nth}@example.com"), "9000");
    }
    assert!(redis.counter("stats", "evicted_keys") > 0);
    let forgotten = (0..10_000).filter(|nth| redis.used(&format!("mailrl:{nth}@example.com")) == (0, 0));
    assert!(forgotten.count() > 1_000);
    let info: String = redis.ask("INFO mailrl");
    let warning = info.lines().find(|line| line.starts_with("mailrl_warning:"));
    assert!(
        warning.is_some_and(|warning| warning.contains("allkeys-lru") && warning.contains("noeviction")),
        "{info}"
    );
}
