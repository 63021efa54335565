//! What mailboxes cost in memory, and that nothing stays behind: neither of those that stopped sending
//! nor of any call.
//!
//! `MAILRL_TEST_MAILBOXES` and `MAILRL_TEST_CALLS` ask for more or less than the tests do by themselves.

use std::time::{Duration, Instant};
use std::{env, fs, thread};

use redis::{Connection, ConnectionLike, Value};
use test_support::{Calls, RedisServer};

const HOUR_MS: i64 = 3_600_000;
const MAILBOXES: usize = 200_000;
const CALLS: usize = 1_000_000;
/// How many commands are sent before their replies are read.
const PIPELINED: usize = 1_000;

/// What this variable asks for instead of the default.
fn scale(variable: &str, default: usize) -> usize {
    env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// Sends commands in one go, and gives the reply to each.
fn pipelined<'a>(
    redis: &mut Connection,
    commands: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
) -> Vec<Value> {
    let mut packed = Vec::new();
    let mut count = 0;
    for (name, key, arguments) in commands {
        let mut command = redis::cmd(name);
        command.arg(key);
        for argument in arguments.split_ascii_whitespace() {
            command.arg(argument);
        }
        command.write_packed_command(&mut packed);
        count += 1;
    }
    redis.req_packed_commands(&packed, 0, count).expect("replies")
}

/// Has each mailbox send one message: reserved, and not yet committed. Gives the reservations.
fn reserve_each(redis: &mut Connection, keys: &[String], arguments: &str) -> Vec<String> {
    let replies = pipelined(
        redis,
        keys.iter().map(|key| ("MAILRL.RESERVE", &**key, arguments)),
    );
    let reservation = |reply| {
        type Six = (u8, String, u64, u64, u64, String);
        let (allowed, reason, .., reservation): Six = redis::from_redis_value(reply).expect("six values");
        assert_eq!(allowed, 1, "{reason}");
        reservation
    };
    replies.into_iter().map(reservation).collect()
}

/// Waits until the server has removed all mailboxes, a few at a time as it does, and has given back the
/// memory for their names.
fn wait_until_gone(redis: &mut Connection, used_memory: u64) {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let (left, used) = (redis.ask::<u64>("DBSIZE"), redis.counter("memory", "used_memory"));
        if left == 0 && used <= used_memory {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{left} mailboxes left, {used} bytes used, expected {used_memory}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Bytes of the server's memory that are resident.
fn resident(server: &RedisServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a running process");
    let kilobytes = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .strip_suffix("kB")?
            .trim()
            .parse()
            .ok()
    });
    kilobytes.map_or_else(
        || panic!("no VmRSS in {status}"),
        |kilobytes: u64| kilobytes * 1_024,
    )
}

fn many_mailboxes_come_and_go(kind: &str, most_bytes_each: u64) {
    let count = scale("MAILRL_TEST_MAILBOXES", MAILBOXES);
    let server = RedisServer::at_noon(["window", kind]);
    let mut redis = server.connection();
    redis.ask::<()>("CONFIG SET hz 100");
    let empty = redis.counter("memory", "used_memory");
    let keys: Vec<_> = (0..count)
        .map(|nth| format!("mailrl:user{nth:07}@example.com"))
        .collect();
    for keys in keys.chunks(PIPELINED) {
        let ids = reserve_each(&mut redis, keys, "3");
        let pairs = keys.iter().zip(&ids);
        pipelined(
            &mut redis,
            pairs.map(|(key, id)| ("MAILRL.COMMIT", &**key, &**id)),
        );
    }
    assert_eq!(redis.ask::<usize>("DBSIZE"), count);
    let each = (redis.counter("memory", "used_memory") - empty) / count as u64;
    println!("{kind}: {each} bytes a mailbox, of {count}");
    assert!(each <= most_bytes_each, "{kind}: {each} bytes a mailbox");

    server.move_clock_ms(26 * HOUR_MS + 1);
    wait_until_gone(&mut redis, empty + 1_000_000);
}

#[test]
fn many_mailboxes_with_calendar_windows_cost_little_and_all_go() {
    many_mailboxes_come_and_go("calendar", 600);
}

#[test]
fn many_mailboxes_with_rolling_windows_cost_little_and_all_go() {
    many_mailboxes_come_and_go("rolling", 2_400);
}

/// Calls every command in every way, one in ten of them wrong, in each mailbox.
fn call_all(redis: &mut Connection, keys: &[String], round: usize) -> usize {
    let each = |name, arguments| keys.iter().map(move |key| (name, &**key, arguments));
    let ids = reserve_each(redis, keys, "2 PERMINUTE 100000 PERDAY 1000000 LEASE 5000");
    // A third is released, a third committed, a third left to its lease.
    let ended = keys
        .iter()
        .zip(&ids)
        .enumerate()
        .filter(|(nth, _)| !(nth + round).is_multiple_of(3));
    let ended = ended.map(|(nth, (key, id))| {
        let name = if (nth + round) % 3 == 1 {
            "MAILRL.RELEASE"
        } else {
            "MAILRL.COMMIT"
        };
        (name, &**key, &**id)
    });
    let ended = pipelined(redis, ended).len();
    let calls = each("MAILRL.RESERVE", "1 PERMINUTE 1")
        .chain(each("MAILRL.RESERVE", "1 PERMINUTE 100000 PERDAY 1 BULK"))
        .chain(each("MAILRL.RESERVE", "x"))
        .chain(each("MAILRL.RELEASE", "1-1"))
        .chain(each("MAILRL.PAUSE", "1"))
        .chain(each("MAILRL.LIMITS", "PERMINUTE 7"))
        .chain(each("MAILRL.LIMITS", "RESET"))
        .chain(each("MAILRL.STATUS", ""));
    keys.len() + ended + pipelined(redis, calls).len()
}

/// As many calls, after which all mailboxes are forgotten; gives what the server then takes, as it counts
/// itself and as the kernel does.
fn a_day_of(calls: usize, server: &RedisServer, redis: &mut Connection, keys: &[String]) -> (u64, u64) {
    let mut made = 0;
    for round in 0.. {
        if made >= calls {
            break;
        }
        made += call_all(redis, keys, round);
        server.move_clock_ms(1_700);
    }
    server.move_clock_ms(26 * HOUR_MS + 1);
    wait_until_gone(redis, u64::MAX);
    (redis.counter("memory", "used_memory"), resident(server))
}

#[test]
fn no_call_leaves_memory_behind() {
    let calls = scale("MAILRL_TEST_CALLS", CALLS);
    let keys: Vec<_> = (0..200).map(|nth| format!("mailrl:{nth}@example.com")).collect();
    for kind in ["calendar", "rolling"] {
        let server = RedisServer::at_noon(["window", kind]);
        let mut redis = server.connection();
        let (used_before, resident_before) = a_day_of(calls / 20, &server, &mut redis, &keys);
        let (used, resident) = a_day_of(calls / 2, &server, &mut redis, &keys);
        println!(
            "{kind}: used {used_before} then {used}, resident {resident_before} then {resident} bytes after {calls} calls"
        );
        // The smallest piece of memory is 8 bytes: a call in twenty that lost one would show. The rest is
        // what a connection's buffers come to.
        let lost = (calls / 5) as u64 + 50_000;
        assert!(used <= used_before + lost, "{kind}: {used_before} then {used}");
        assert!(
            resident <= resident_before + 2_000_000 + lost,
            "{kind}: {resident_before} then {resident}"
        );
    }
}
