//! No input kills the server, and what is refused changes nothing.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use redis::{Connection, Value};
use test_support::{Calls, RedisServer, error_text};

const KEY: &[u8] = b"mailrl:orders@example.com";

/// Sends a command whose words are any bytes.
fn send(redis: &mut Connection, words: &[&[u8]]) -> Result<Value, String> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query(redis).map_err(|error| error_text(&error))
}

/// Sends a command that has to be refused: with this code, counted, and with nothing changed.
fn refused(redis: &mut Connection, words: &[&[u8]], code: &str) -> String {
    let before = redis.snapshot(words[1]);
    let errors = redis.counter("mailrl", "mailrl_errors");
    let shown: Vec<_> = words
        .iter()
        .map(|word| word[..word.len().min(60)].escape_ascii().to_string())
        .collect();
    let error = send(redis, words).expect_err(&shown.join(" "));
    assert!(error.starts_with(&format!("{code} ")), "{shown:?}: {error}");
    assert_eq!(redis.snapshot(words[1]), before, "{shown:?}");
    assert_eq!(redis.counter("mailrl", "mailrl_errors"), errors + 1, "{shown:?}");
    assert_eq!(redis.ask::<String>("PING"), "PONG");
    error
}

/// All commands, with arguments that are right.
const ALL: [&[&[u8]]; 8] = [
    &[b"MAILRL.RESERVE", KEY, b"1"],
    &[b"MAILRL.RELEASE", KEY, b"1700000000000-0"],
    &[b"MAILRL.COMMIT", KEY, b"1700000000000-0"],
    &[b"MAILRL.PAUSE", KEY, b"1000"],
    &[b"MAILRL.LIMITS", KEY],
    &[b"MAILRL.LIMITS", KEY, b"PERMINUTE", b"5"],
    &[b"MAILRL.LIMITS", KEY, b"RESET"],
    &[b"MAILRL.STATUS", KEY],
];

/// What is no integer, or one that is out of every range.
const NO_NUMBERS: [&[u8]; 16] = [
    b"-1",
    b"4294967296",
    b"4294967297",
    b"9223372036854775808",
    b"18446744073709551617",
    b"1e20",
    b"",
    b"abc",
    b"1.5",
    b" 1",
    b"1 ",
    b"+1",
    b"0x10",
    b"1\0",
    b"\0",
    b"\xff\xfe",
];

#[test]
fn a_number_out_of_range_is_refused_and_named() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let very_long = vec![b'9'; 100_000];
    // With and without a mailbox that stands there already.
    for _ in 0..2 {
        for bad in NO_NUMBERS.iter().copied().chain([&very_long[..]]) {
            let error = refused(&mut redis, &[b"MAILRL.RESERVE", KEY, bad], "ERR");
            assert!(error.contains("recipients") && error.len() < 300, "{error}");
            for option in ["PERMINUTE", "PERDAY", "CONCURRENT", "LEASE"] {
                let words: [&[u8]; 5] = [b"MAILRL.RESERVE", KEY, b"1", option.as_bytes(), bad];
                let error = refused(&mut redis, &words, "ERR");
                assert!(error.contains(option) && error.len() < 300, "{error}");
            }
            for option in ["PERMINUTE", "PERDAY", "CONCURRENT"] {
                let words: [&[u8]; 4] = [b"MAILRL.LIMITS", KEY, option.as_bytes(), bad];
                let error = refused(&mut redis, &words, "ERR");
                assert!(error.contains(option) && error.len() < 300, "{error}");
            }
            refused(&mut redis, &[b"MAILRL.PAUSE", KEY, bad], "ERR");
        }
        redis.allowed(std::str::from_utf8(KEY).expect("ASCII"), "1");
    }
}

#[test]
fn each_range_ends_where_it_is_said_to() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for (option, largest) in [
        ("PERMINUTE", 4_294_967_295_u64),
        ("PERDAY", 4_294_967_295),
        ("CONCURRENT", 1_024),
        ("LEASE", 3_600_000),
    ] {
        for outside in [0, largest + 1] {
            let error = redis.refusal(&format!("MAILRL.RESERVE k 1 {option} {outside}"));
            assert!(
                error.contains(option) && error.contains(&format!("from 1 to {largest}")),
                "{error}"
            );
        }
        redis.allowed(&format!("k:{option}:1"), &format!("1 {option} 1"));
        redis.allowed(&format!("k:{option}:2"), &format!("1 {option} {largest}"));
        if option != "LEASE" {
            for outside in [0, largest + 1] {
                let error = redis.refusal(&format!("MAILRL.LIMITS k {option} {outside}"));
                assert!(error.contains(&format!("from 1 to {largest}")), "{error}");
            }
            redis.limits("k:limits", &format!("{option} 1"));
            redis.limits("k:limits", &format!("{option} {largest}"));
        }
    }
    redis.refusal("MAILRL.RESERVE k 0");
    redis.allowed("k", "4294967295 PERDAY 4294967295");
    redis.refusal("MAILRL.PAUSE k 86400001");
    redis.pause("k", 86_400_000);
    redis.pause("k", 0);
}

#[test]
fn an_option_that_is_unknown_or_doubled_or_lacks_its_value_is_refused_and_named() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for (rest, named) in [
        ("1 PERMINUTE 5 PERMINUTE 5", "PERMINUTE"),
        ("1 PERDAY 5 perday 6", "PERDAY"),
        ("1 CONCURRENT 5 LEASE 5 Concurrent 6", "CONCURRENT"),
        ("1 LEASE 5 LEASE 5", "LEASE"),
        ("1 BULK BULK", "BULK"),
        ("1 BULK PERMINUTE 5 bulk", "BULK"),
        ("1 BULK 5", "5"),
        ("1 LEASE BULK", "LEASE"),
        ("1 RESET", "RESET"),
        ("1 PERMINUTE", "PERMINUTE"),
        ("1 PERDAY 5 CONCURRENT", "CONCURRENT"),
        ("1 PERHOUR 5", "PERHOUR"),
        ("1 2", "2"),
        ("1 PERMINUTE PERDAY 5", "PERMINUTE"),
        ("1 %s%n%p 5", "%s%n%p"),
    ] {
        let words = format!("MAILRL.RESERVE k {rest}");
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let error = refused(&mut redis, &words, "ERR");
        assert!(error.contains(named), "{error}");
    }
    for (rest, named) in [
        ("PERMINUTE 5 PERMINUTE 5", "PERMINUTE"),
        ("perday 5 CONCURRENT 3 PerDay 6", "PERDAY"),
        ("CONCURRENT 5 CONCURRENT 6", "CONCURRENT"),
        ("RESET reset", "RESET"),
        ("RESET PERMINUTE 5", "RESET"),
        ("PERDAY 5 RESET", "RESET"),
        ("PERMINUTE", "PERMINUTE"),
        ("PERMINUTE RESET", "PERMINUTE"),
        ("PERDAY 5 CONCURRENT", "CONCURRENT"),
        ("PERHOUR 5", "PERHOUR"),
        ("LEASE 5", "LEASE"),
        ("BULK", "BULK"),
        ("5", "5"),
        ("PERMINUTE 5 %s%n%p", "%s%n%p"),
    ] {
        let words = format!("MAILRL.LIMITS k {rest}");
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let error = refused(&mut redis, &words, "ERR");
        assert!(error.contains(named), "{error}");
    }
    refused(
        &mut redis,
        &[b"MAILRL.RESERVE", KEY, b"1", b"\xff\r\n\0", b"1"],
        "ERR",
    );
    assert_eq!(redis.ask::<u64>("DBSIZE"), 0);
}

#[test]
fn a_wrong_number_of_arguments_is_refused() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for words in [
        "MAILRL.RESERVE",
        "MAILRL.RESERVE k",
        "MAILRL.RELEASE k",
        "MAILRL.RELEASE k 1-1 2-2",
        "MAILRL.COMMIT k",
        "MAILRL.COMMIT k 1-1 2-2",
        "MAILRL.PAUSE k",
        "MAILRL.PAUSE k 1 2",
        "MAILRL.LIMITS",
        "MAILRL.STATUS",
        "MAILRL.STATUS k k",
    ] {
        let error = redis.refusal(words);
        assert!(error.contains("wrong number of arguments"), "{words}: {error}");
    }
}

#[test]
fn what_is_no_reservation_id_is_refused() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    redis.allowed(std::str::from_utf8(KEY).expect("ASCII"), "1");
    let very_long = vec![b'1'; 100_000];
    let bad: [&[u8]; 14] = [
        b"",
        b"-",
        b"1",
        b"1-",
        b"-1",
        b"1-1-1",
        b"a-b",
        b"+1-1",
        b"1-+1",
        b" 1-1",
        b"1-1\0",
        b"1-4294967296",
        b"18446744073709551616-1",
        b"\xff-\xff",
    ];
    for bad in bad.into_iter().chain([&very_long[..]]) {
        for command in [b"MAILRL.RELEASE".as_slice(), b"MAILRL.COMMIT"] {
            let error = refused(&mut redis, &[command, KEY, bad], "ERR");
            assert!(error.contains("reservation") && error.len() < 300, "{error}");
        }
    }
}

#[test]
fn any_bytes_are_a_key() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let long = vec![b'x'; 70_000];
    let keys: [&[u8]; 6] = [b"", b"\0", b"mailrl:a\0b", b"\xff\xfe\x80", b"%s%n\r\n", &long];
    for key in keys {
        let reply = send(&mut redis, &[b"MAILRL.RESERVE", key, b"3", b"PERMINUTE", b"1"]).expect("allowed");
        let (allowed, .., id): (u8, String, u64, u64, u64, Vec<u8>) =
            redis::from_redis_value(reply).expect("six values");
        assert_eq!(allowed, 1, "{}", key.escape_ascii());
        send(&mut redis, &[b"MAILRL.STATUS", key]).expect("a status");
        let pause = send(&mut redis, &[b"MAILRL.PAUSE", key, b"0"]);
        assert_eq!(pause, Ok(Value::Int(0)));
        send(&mut redis, &[b"MAILRL.LIMITS", key, b"PERDAY", b"5"]).expect("limits");
        let release = send(&mut redis, &[b"MAILRL.RELEASE", key, &id]);
        assert_eq!(release, Ok(Value::Int(1)), "{}", key.escape_ascii());
    }
    assert_eq!(redis.ask::<usize>("DBSIZE"), keys.len());
}

#[test]
fn a_key_of_another_type_is_refused_by_every_command() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    for make in [
        "RPUSH {} a b",
        "HSET {} a b",
        "SADD {} a b",
        "SADD {} 1 2",
        "ZADD {} 1 a",
        "XADD {} * a b",
    ] {
        let key = String::from_utf8_lossy(KEY);
        redis.ask::<Value>(&make.replace("{}", &key));
        redis.ask::<Value>(&format!("PEXPIREAT {key} 1900000000000"));
        for words in ALL {
            refused(&mut redis, words, "WRONGTYPE");
        }
        redis.ask::<Value>(&format!("DEL {key}"));
    }
}

#[test]
fn a_string_that_is_not_ours_is_refused_and_stays_as_it_is() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let mut random = [0; 10_240];
    StdRng::seed_from_u64(10_240).fill_bytes(&mut random);
    let strings: [&[u8]; 7] = [
        b"",
        b"12345",
        b"hello",
        &[b'x'; 40],
        &[b'x'; 100],
        &[0; 296],
        &random,
    ];
    for string in strings {
        send(&mut redis, &[b"SET", KEY, string, b"PXAT", b"1900000000000"]).expect("OK");
        // Not even the way in which the server keeps it.
        let encoding = |redis: &mut Connection| send(redis, &[b"OBJECT", b"ENCODING", KEY]);
        let before = encoding(&mut redis);
        for words in ALL {
            refused(&mut redis, words, "BADSTATE");
            assert_eq!(encoding(&mut redis), before);
        }
    }
}

#[test]
fn a_string_of_the_length_of_ours_is_not_taken_for_ours() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let key = std::str::from_utf8(KEY).expect("ASCII");
    redis.allowed(key, "1");
    let mut value = redis.value(key);
    value[0] = b'm';
    send(&mut redis, &[b"SET", KEY, &value]).expect("OK");
    for words in ALL {
        let error = refused(&mut redis, words, "BADSTATE");
        assert!(error.contains("mailrl did not write"), "{error}");
    }
}

#[test]
fn a_value_of_a_later_version_is_refused_by_its_number() {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let key = std::str::from_utf8(KEY).expect("ASCII");
    redis.allowed(key, "1");
    let mut value = redis.value(key);
    value[3] = 7;
    send(&mut redis, &[b"SET", KEY, &value]).expect("OK");
    for words in ALL {
        let error = refused(&mut redis, words, "BADSTATE");
        assert!(error.contains("version 7"), "{error}");
    }
}
