//! What an allowed reservation of a mailbox in use weighs in the append-only file.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use test_support::{Calls, NOON_MS, RedisServer};

/// The file holds the key with each command: 26 bytes are what the promise counts with.
const KEY: &str = "mailrl:invoice@example.com";
const MOST_CALENDAR: f64 = 250.0;
const MOST_ROLLING: f64 = 320.0;

/// How a mailbox is used.
struct Use {
    name: &'static str,
    /// One reservation each, on average.
    every_ms: i64,
    lease_ms: i64,
    commits: bool,
}

/// 25 messages a minute are one each 2.4 s.
const USES: [Use; 7] = [
    Use {
        name: "25 a minute, committed",
        every_ms: 2_400,
        lease_ms: 120_000,
        commits: true,
    },
    Use {
        name: "25 a minute, not committed",
        every_ms: 2_400,
        lease_ms: 120_000,
        commits: false,
    },
    Use {
        name: "25 a minute, 60 always open",
        every_ms: 2_400,
        lease_ms: 60 * 2_400,
        commits: false,
    },
    Use {
        name: "25 a minute, 1,000 always open",
        every_ms: 2_400,
        lease_ms: 1_000 * 2_400,
        commits: false,
    },
    Use {
        name: "10 a minute, not committed",
        every_ms: 6_000,
        lease_ms: 120_000,
        commits: false,
    },
    Use {
        name: "one in 3 minutes, committed",
        every_ms: 180_000,
        lease_ms: 120_000,
        commits: true,
    },
    Use {
        name: "40 a second, not committed",
        every_ms: 25,
        lease_ms: 120_000,
        commits: false,
    },
];

/// The average of the bytes that a reservation appends.
fn average(kind: &str, usage: &Use) -> f64 {
    let server = RedisServer::builder()
        .module(["window", kind])
        .with_clock()
        .arguments(["--appendonly", "yes", "--appendfsync", "no"])
        .start();
    server.stop_clock_at_ms(NOON_MS);
    let mut redis = server.connection();
    let arguments = format!("2 PERMINUTE 100000 PERDAY 1000000 LEASE {}", usage.lease_ms);
    let mut random = StdRng::seed_from_u64(250);
    let mut reserve = |counted: bool| {
        let before = server.appended_len();
        let id = redis.allowed(KEY, &arguments);
        let bytes = server.appended_len() - before;
        if usage.commits {
            redis.commit(KEY, &id);
        }
        server.move_clock_ms(random.random_range(0..=2 * usage.every_ms));
        if counted { bytes } else { 0 }
    };
    // Until as many are open as will be.
    for _ in 0..1_100 {
        reserve(false);
    }
    let count = 3_000_u32;
    let bytes: u64 = (0..count).map(|_| reserve(true)).sum();
    f64::from(u32::try_from(bytes).expect("less than 4 GB")) / f64::from(count)
}

fn holds(kind: &str, most: f64) {
    for usage in &USES {
        let average = average(kind, usage);
        println!("{kind}, {}: {average:.1} bytes", usage.name);
        assert!(average <= most, "{kind}, {}: {average} bytes", usage.name);
    }
}

#[test]
fn a_reservation_in_calendar_windows_appends_at_most_250_bytes() {
    assert_eq!(KEY.len(), 26);
    holds("calendar", MOST_CALENDAR);
}

#[test]
fn a_reservation_in_rolling_windows_appends_at_most_320_bytes() {
    holds("rolling", MOST_ROLLING);
}
