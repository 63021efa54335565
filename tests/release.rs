//! A reservation ends once: given back, kept, or with its lease.

use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

#[test]
fn a_release_gives_back_the_message_and_its_recipients_once() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        redis.allowed(KEY, "5");
        let id = redis.allowed(KEY, "7");
        assert!(redis.release(KEY, &id));
        assert_eq!(redis.used(KEY), (1, 5), "{kind}");
        let before = redis.snapshot(KEY.as_bytes());
        assert!(!redis.release(KEY, &id));
        assert!(!redis.commit(KEY, &id));
        assert_eq!(redis.snapshot(KEY.as_bytes()), before);
        assert_eq!(redis.counter("mailrl", "mailrl_released"), 1);
    }
}

#[test]
fn a_committed_reservation_stays_counted_and_cannot_be_released() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let id = redis.allowed(KEY, "7");
        assert!(redis.commit(KEY, &id));
        let before = redis.snapshot(KEY.as_bytes());
        assert!(!redis.release(KEY, &id));
        assert!(!redis.commit(KEY, &id));
        assert_eq!(redis.snapshot(KEY.as_bytes()), before);
        assert_eq!(redis.used(KEY), (1, 7), "{kind}");
        assert_eq!(redis.counter("mailrl", "mailrl_committed"), 1);
    }
}

#[test]
fn a_reservation_nobody_made_cannot_be_ended() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let id = redis.allowed(KEY, "7");
    let (ms, seq) = id.split_once('-').expect("<ms>-<seq>");
    let ms: u64 = ms.parse().expect("a number");
    let before = redis.snapshot(KEY.as_bytes());
    for unknown in [
        format!("{ms}-1"),
        format!("{ms}-4294967295"),
        format!("{}-{seq}", ms - 1),
        format!("{}-{seq}", ms + 1),
        "0-0".into(),
    ] {
        assert!(!redis.release(KEY, &unknown), "{unknown}");
        assert!(!redis.commit(KEY, &unknown), "{unknown}");
    }
    assert!(!redis.release("mailrl:another", &id));
    assert_eq!(redis.snapshot(KEY.as_bytes()), before);
    assert!(redis.release(KEY, &id));
}

#[test]
fn no_key_is_made_by_ending_a_reservation() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    assert!(!redis.release(KEY, "1813060800000-0"));
    assert!(!redis.commit(KEY, "1813060800000-0"));
    let id = redis.allowed(KEY, "1");
    redis.ask::<()>("FLUSHALL");
    assert!(!redis.release(KEY, &id));
    assert!(!redis.commit(KEY, &id));
    assert_eq!(redis.ask::<u64>("DBSIZE"), 0);
}

#[test]
fn a_reservation_can_be_released_until_its_lease_is_over() {
    for (lease, lease_ms) in [("", 120_000), (" LEASE 50", 50), (" LEASE 3600000", 3_600_000)] {
        let server = RedisServer::at_noon([]);
        let mut redis = server.connection();
        let in_time = redis.allowed(KEY, &format!("3{lease}"));
        let too_late = redis.allowed(KEY, &format!("4{lease}"));
        server.move_clock_ms(lease_ms - 1);
        assert!(redis.release(KEY, &in_time), "{lease}");
        server.move_clock_ms(1);
        assert!(!redis.release(KEY, &too_late), "{lease}");
        assert!(!redis.commit(KEY, &too_late), "{lease}");
        assert_eq!(redis.used(KEY).1, 4);
    }
}

#[test]
fn a_lease_that_is_over_frees_its_place_among_the_concurrent_sends() {
    let server = RedisServer::with_module([]);
    let mut redis = server.connection();
    redis.allowed(KEY, "1 CONCURRENT 1 LEASE 50");
    assert_eq!(redis.denied(KEY, "1 CONCURRENT 1").0, "concurrent");
    std::thread::sleep(std::time::Duration::from_millis(51));
    assert_eq!(redis.status(KEY).open, 0);
    redis.allowed(KEY, "1 CONCURRENT 1");
}

#[test]
fn a_release_gives_back_only_what_a_window_still_covers() {
    // Calendar: the minute is over after 60 s, however late in it the message was.
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    server.move_clock_ms(59_000);
    let id = redis.allowed(KEY, "7");
    server.move_clock_ms(2_000);
    redis.allowed(KEY, "1");
    assert!(redis.release(KEY, &id));
    assert_eq!(redis.used(KEY), (1, 1));

    // Rolling: it is covered for a whole minute.
    redis.ask::<()>("CONFIG SET mailrl.window rolling");
    let (gone, covered) = ("mailrl:gone", "mailrl:covered");
    let id = redis.allowed(covered, "7");
    let late = redis.allowed(gone, "7");
    server.move_clock_ms(59_000);
    redis.allowed(covered, "1");
    assert!(redis.release(covered, &id));
    assert_eq!(redis.used(covered), (1, 1));
    server.move_clock_ms(3_000);
    redis.allowed(gone, "1");
    assert!(redis.release(gone, &late));
    assert_eq!(redis.used(gone), (1, 1));
}

#[test]
fn nothing_falls_below_zero_when_the_windows_have_moved_on() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let ids: Vec<_> = (0..10).map(|_| redis.allowed(KEY, "7 LEASE 3600000")).collect();
        server.move_clock_ms(3_000_000);
        for id in &ids {
            assert!(redis.release(KEY, id));
        }
        assert_eq!(redis.used(KEY), (0, 0), "{kind}");
        assert_eq!(redis.reserve(KEY, "1").minute_left, 24);
    }
}

#[test]
fn a_release_across_a_switch_of_the_window_kind_gives_back_all() {
    for (before, after) in [("calendar", "rolling"), ("rolling", "calendar")] {
        let server = RedisServer::at_noon(["window", before]);
        let mut redis = server.connection();
        let released = redis.allowed(KEY, "7");
        let committed = redis.allowed(KEY, "2");
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {after}"));
        assert!(redis.release(KEY, &released));
        assert!(redis.commit(KEY, &committed));
        assert_eq!(redis.used(KEY), (1, 2), "{before} to {after}");
        assert!(!redis.release(KEY, &released));
        assert!(!redis.release(KEY, &committed));
        assert_eq!(redis.status(KEY).open, 0);
    }
}

#[test]
fn a_commit_in_rolling_windows_counts_the_mail_from_then_on() {
    let server = RedisServer::at_noon(["window", "rolling"]);
    let mut redis = server.connection();
    let id = redis.allowed(KEY, "1 PERMINUTE 1");
    server.move_clock_ms(30_000);
    assert!(redis.commit(KEY, &id));
    assert_eq!(redis.denied(KEY, "1 PERMINUTE 1"), ("minute".into(), 61_000));
    assert_eq!(redis.used(KEY), (1, 1));
}

#[test]
fn past_1024_open_reservations_the_oldest_counts_as_committed() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let reserve = |redis: &mut redis::Connection| redis.allowed(KEY, "1 PERMINUTE 5000");
    let ids: Vec<_> = (0..1_024).map(|_| reserve(&mut redis)).collect();
    assert_eq!(redis.status(KEY).open, 1_024);
    assert_eq!(
        redis.denied(KEY, "1 PERMINUTE 5000 CONCURRENT 1024").0,
        "concurrent"
    );
    let newest = reserve(&mut redis);
    assert_eq!(redis.status(KEY).open, 1_024);
    assert!(!redis.release(KEY, &ids[0]));
    assert_eq!(redis.used(KEY), (1_025, 1_025));
    for id in ids[1..].iter().chain([&newest]) {
        assert!(redis.release(KEY, id), "{id}");
    }
    assert_eq!(redis.used(KEY), (1, 1));
    assert_eq!(redis.status(KEY).open, 0);
}

#[test]
fn a_reservation_ends_also_when_memory_is_out_while_none_can_be_made() {
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let released = redis.allowed(KEY, "7");
        let committed = redis.allowed(KEY, "2");
        redis.ask::<()>("CONFIG SET maxmemory 1");
        let error = redis.refusal(&format!("MAILRL.RESERVE {KEY} 1"));
        assert!(error.starts_with("OOM "), "{error}");
        assert!(redis.release(KEY, &released));
        assert!(redis.commit(KEY, &committed));
        redis.pause(KEY, 1_000);
        assert_eq!(redis.used(KEY), (1, 2));
        redis.ask::<()>("CONFIG SET maxmemory 0");
        redis.pause(KEY, 0);
        redis.allowed(KEY, "1");
    }
}
