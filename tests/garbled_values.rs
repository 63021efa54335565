//! A value that was damaged outside the module: an error or an answer, never the end of the server.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Value};
use test_support::{Calls, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

/// Real values of both window kinds, with reservations open and closed, turns,
/// overrides and a pause.
fn real_values(server: &RedisServer) -> Vec<Vec<u8>> {
    let mut redis = server.connection();
    let mut values = Vec::new();
    for kind in ["calendar", "rolling"] {
        redis.ask::<()>(&format!("CONFIG SET mailrl.window {kind}"));
        for reservations in [1, 40] {
            let key = format!("{kind}:{reservations}");
            for nth in 0..reservations {
                let id = redis.allowed(&key, "3 PERMINUTE 100 LEASE 3600000");
                if nth % 3 == 0 {
                    redis.commit(&key, &id);
                }
                server.move_clock_ms(700);
            }
            for arguments in [
                "1 PERMINUTE 1",
                "1 PERMINUTE 1 BULK",
                "1 PERDAY 1",
                "1 PERDAY 1 BULK",
            ] {
                redis.denied(&key, arguments);
            }
            redis.limits(&key, "PERMINUTE 200 CONCURRENT 100");
            redis.pause(&key, 60_000);
            values.push(redis.value(&key));
        }
    }
    values
}

/// Puts each value there and calls everything. Gives how many values were refused, by every command
/// and left as they were.
fn call_all_on(redis: &mut Connection, values: &[Vec<u8>]) -> usize {
    let calls: [&[&str]; 10] = [
        &["MAILRL.STATUS", KEY],
        &["MAILRL.RELEASE", KEY, "1813060800000-0"],
        &["MAILRL.RESERVE", KEY, "2", "CONCURRENT", "9"],
        &["MAILRL.COMMIT", KEY, "1813060800000-1"],
        &["MAILRL.PAUSE", KEY, "10"],
        &["MAILRL.LIMITS", KEY],
        &["MAILRL.RESERVE", KEY, "2", "BULK"],
        &["MAILRL.LIMITS", KEY, "PERDAY", "90"],
        &["MAILRL.LIMITS", KEY, "RESET"],
        &["MAILRL.RESERVE", KEY, "2", "PERDAY", "1000000"],
    ];
    let mut pipe = redis::pipe();
    pipe.ignore_errors();
    for value in values {
        pipe.cmd("SET").arg(KEY).arg(value);
        for call in calls {
            pipe.cmd(call[0]).arg(&call[1..]);
        }
        pipe.cmd("GET").arg(KEY);
    }
    let replies: Vec<Value> = pipe.query(redis).expect("a server that is alive");
    let mut all_refused = 0;
    for (value, replies) in values.iter().zip(replies.chunks_exact(2 + calls.len())) {
        let refused = replies.iter().filter(|reply| match reply {
            Value::ServerError(error) => {
                assert_eq!(error.code(), "BADSTATE", "{error:?}");
                true
            }
            _ => false,
        });
        match refused.count() {
            0 => {}
            count => {
                assert_eq!(count, calls.len(), "{replies:?}");
                assert_eq!(replies.last(), Some(&Value::BulkString(value.clone())));
                all_refused += 1;
            }
        }
    }
    all_refused
}

#[test]
fn a_value_cut_off_anywhere_is_refused() {
    let server = RedisServer::at_noon([]);
    let values = real_values(&server);
    let lengths: BTreeSet<usize> = values.iter().map(Vec::len).collect();
    let mut redis = server.connection();
    for value in values {
        let cuts: Vec<_> = (0..value.len())
            .step_by(4)
            .map(|len| value[..len].to_vec())
            .collect();
        assert_eq!(call_all_on(&mut redis, &cuts), cuts.len());
        let longer: Vec<_> = [1, 31, 32, 1_000]
            .map(|more| [&value[..], &vec![0; more]].concat())
            .into_iter()
            .filter(|longer| !lengths.contains(&longer.len()))
            .collect();
        assert_eq!(call_all_on(&mut redis, &longer), longer.len());
    }
    redis.ask::<String>("PING");
}

#[test]
fn no_flipped_byte_ends_the_server() {
    let server = RedisServer::at_noon([]);
    let values = real_values(&server);
    let mut redis = server.connection();
    for value in values {
        let flipped: Vec<_> = (0..value.len().min(400))
            .chain((400..value.len()).step_by(11))
            .flat_map(|place| {
                [0x01, 0x80, 0xff].map(|mask| {
                    let mut flipped = value.clone();
                    flipped[place] ^= mask;
                    flipped
                })
            })
            .collect();
        call_all_on(&mut redis, &flipped);
    }
    assert_eq!(redis.ask::<String>("PING"), "PONG");
}

#[test]
fn no_garbage_ends_the_server() {
    let server = RedisServer::at_noon([]);
    let values = real_values(&server);
    let mut redis = server.connection();
    let mut random = StdRng::seed_from_u64(0x6d61_696c);
    let mut garbled = || {
        let mut value = values[random.random_range(0..values.len())].clone();
        // Where the header is left as it is, what follows is believed: all the better to be wrong.
        let from = if random.random_bool(0.9) { 24 } else { 0 };
        match random.random_range(0..3) {
            0 => random.fill(&mut value[from..]),
            1 => {
                let start = random.random_range(from..value.len());
                let end = (start + random.random_range(1..64)).min(value.len());
                random.fill(&mut value[start..end]);
            }
            _ => {
                for _ in 0..random.random_range(1..20) {
                    let place = random.random_range(from..value.len());
                    value[place] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)];
                }
            }
        }
        value
    };
    for _ in 0..40 {
        let batch: Vec<_> = (0..500).map(|_| garbled()).collect();
        call_all_on(&mut redis, &batch);
    }
    assert_eq!(redis.ask::<String>("PING"), "PONG");
}
