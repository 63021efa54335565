//! A mailbox that stops sending is forgotten, and no sooner.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use test_support::{Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
const HOUR_MS: u64 = 3_600_000;

fn expires_at(redis: &mut redis::Connection) -> i64 {
    redis.snapshot(KEY.as_bytes()).expires_at
}

#[test]
fn each_allowed_reservation_keeps_the_expiry_between_25_and_26_hours_ahead() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let mut random = StdRng::seed_from_u64(26);
        for _ in 0..500 {
            redis.allowed(KEY, "1 PERMINUTE 1000 PERDAY 100000");
            let ahead = expires_at(&mut redis).cast_unsigned() - redis.now_ms();
            assert!(
                (25 * HOUR_MS..=26 * HOUR_MS).contains(&ahead),
                "{kind}: {ahead} ms"
            );
            server.move_clock_ms(random.random_range(0..2_000_000));
        }
    }
}

#[test]
fn the_expiry_is_not_written_each_time() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        redis.allowed(KEY, "1");
        seen.insert(expires_at(&mut redis));
        server.move_clock_ms(360_000);
    }
    // Ten hours.
    assert!((5..=11).contains(&seen.len()), "{seen:?}");
}

#[test]
fn an_expiry_that_somebody_removed_or_changed_is_mended_by_the_next_reservation() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1");
    let (week_off, later) = (NOON_MS + 168 * HOUR_MS, NOON_MS + 26 * HOUR_MS);
    for change in [
        format!("PERSIST {KEY}"),
        format!("PEXPIRE {KEY} 5000"),
        format!("PEXPIREAT {KEY} {week_off}"),
    ] {
        assert_eq!(redis.ask::<u8>(&change), 1);
        assert_ne!(expires_at(&mut redis), later.cast_signed());
        redis.allowed(KEY, "1");
        assert_eq!(expires_at(&mut redis), later.cast_signed(), "{change}");
    }
}

#[test]
fn only_an_allowed_reservation_and_a_pause_touch_the_expiry() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let released = redis.allowed(KEY, "1");
    let committed = redis.allowed(KEY, "1");
    redis.ask::<u8>(&format!("PERSIST {KEY}"));
    redis.denied(KEY, "1 PERMINUTE 1");
    redis.denied(KEY, "1 PERDAY 1");
    redis.denied(KEY, "1 CONCURRENT 1");
    assert!(redis.release(KEY, &released));
    assert!(redis.commit(KEY, &committed));
    redis.status(KEY);
    assert_eq!(expires_at(&mut redis), -1);
    redis.pause(KEY, 1_000);
    assert_eq!(expires_at(&mut redis), (NOON_MS + 26 * HOUR_MS).cast_signed());
}

#[test]
fn nothing_is_left_of_mailboxes_that_stopped_sending() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for nth in 0..100 {
        let key = format!("mailrl:{nth}");
        let id = redis.allowed(&key, "1");
        match nth % 4 {
            0 => redis.release(&key, &id),
            1 => redis.commit(&key, &id),
            2 => redis.pause(&key, 60_000) > 0,
            _ => true,
        };
    }
    server.move_clock_ms((26 * HOUR_MS).cast_signed());
    assert_eq!(redis.ask::<u64>("DBSIZE"), 100);
    server.move_clock_ms(1);
    let deadline = Instant::now() + Duration::from_secs(10);
    // The server removes them by itself, a few at a time.
    while redis.ask::<u64>("DBSIZE") > 0 {
        assert!(Instant::now() < deadline, "{} left", redis.ask::<u64>("DBSIZE"));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_forgotten_mailbox_starts_anew() {
    let server = RedisServer::at_noon(["window", "rolling"]);
    let mut redis = server.connection();
    let id = redis.allowed(KEY, "3 PERMINUTE 1 LEASE 3600000");
    server.move_clock_ms((26 * HOUR_MS).cast_signed() + 1);
    assert!(!redis.release(KEY, &id));
    assert_eq!(redis.value(KEY), b"");
    assert_eq!(redis.used(KEY), (0, 0));
    assert_eq!(redis.reserve(KEY, "3 PERMINUTE 1").day_left, 8_997);
}
