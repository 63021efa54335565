//! A value that an older module wrote is read as it was meant. `tests/values/` keeps what each version of
//! the layout wrote of the same mailbox, as `<version>-<window kind>`.

use redis::Connection;
use test_support::{Calls, NOON_MS, Overrides, RedisServer};

const KEY: &str = "mailrl:orders@example.com";
/// The time that stands in the values as now.
const NOW_MS: u64 = NOON_MS + 1_500;
/// The reservation that stands in the values as open.
const OPEN: &str = "1813060801500-2";

const NEWEST: [(&str, &[u8]); 2] = [
    ("calendar", include_bytes!("values/1-calendar")),
    ("rolling", include_bytes!("values/1-rolling")),
];
const ALL: [(&str, &[u8]); 2] = NEWEST;

/// Has a mailbox use everything that its value can hold.
fn use_all(server: &RedisServer, redis: &mut Connection) {
    let (released, committed) = (redis.allowed(KEY, "9"), redis.allowed(KEY, "6"));
    assert!(redis.release(KEY, &released) && redis.commit(KEY, &committed));
    server.stop_clock_at_ms(NOW_MS);
    assert_eq!(redis.allowed(KEY, "5"), OPEN);
    redis.limits(KEY, "PERMINUTE 4 PERDAY 50 CONCURRENT 3");
    redis.pause(KEY, 30_000);
    redis.denied(KEY, "1");
    redis.denied(KEY, "40 BULK");
}

#[test]
fn the_layout_does_not_change_without_a_new_version() {
    for (kind, value) in NEWEST {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        use_all(&server, &mut redis);
        assert!(
            redis.ask::<Vec<u8>>(&format!("GET {KEY}")) == value,
            "{kind}: values that are out there have another layout; give this one the next version, keep \
             reading the old one, and add what it writes to tests/values"
        );
    }
}

#[test]
fn what_each_version_wrote_is_read_as_it_was_meant() {
    for (kind, value) in ALL {
        for kind_now in ["calendar", "rolling"] {
            let server = RedisServer::at_noon(["window", kind_now, "pacing", "no"]);
            let mut redis = server.connection();
            server.stop_clock_at_ms(NOW_MS);
            let set = redis::cmd("SET").arg(KEY).arg(value).exec(&mut redis);
            set.expect("a new key");

            let status = redis.status(KEY);
            assert_eq!(
                (status.minute.used, status.minute.limit),
                (2, 4),
                "{kind} in {kind_now}"
            );
            assert_eq!(
                (status.day.used, status.day.limit),
                (11, 50),
                "{kind} in {kind_now}"
            );
            assert_eq!(
                (status.open, status.paused_for_ms),
                (1, 30_000),
                "{kind} in {kind_now}"
            );
            let overrides = Overrides {
                per_minute: Some(4),
                per_day: Some(50),
                concurrent: Some(3),
            };
            assert_eq!(status.overrides, overrides, "{kind} in {kind_now}");

            assert_eq!(redis.denied(KEY, "1"), ("paused".into(), 30_000));
            assert!(redis.release(KEY, OPEN), "{kind} in {kind_now}");
            server.move_clock_ms(30_000);
            assert_eq!(redis.used(KEY), (1, 6), "{kind} in {kind_now}");
            redis.allowed(KEY, "44");
            redis.denied(KEY, "1");
        }
    }
}
