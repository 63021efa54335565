//! A server that is killed under load (SIGKILL) knows, once it is back, what its callers were told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, RedisResult, Value};
use test_support::{Calls, NOON_MS, RedisServer};

const CALLERS: usize = 3;

/// A server whose clock runs on from noon: midnight is far.
fn server<const N: usize>(arguments: [&str; N]) -> RedisServer {
    let builder = RedisServer::builder().module([]).with_clock();
    let server = builder
        .arguments(["--appendonly", "yes"])
        .arguments(arguments)
        .start();
    let now_ms = server.connection().now_ms();
    server.move_clock_ms(NOON_MS.cast_signed() - now_ms.cast_signed());
    server
}

/// What a caller was told: when, and the recipients in use after that.
type Told = Vec<(Instant, u64)>;

/// Reserves in a mailbox of its own until the server is gone, releases each fourth and commits each third.
fn call(redis: &mut Connection, key: &str, told: &mut Told, answered: &AtomicU64) -> RedisResult<()> {
    let mut used = redis.used(key).1;
    let mut tell = |used| {
        told.push((Instant::now(), used));
        answered.fetch_add(1, Ordering::Relaxed);
    };
    tell(used);
    for nth in 1_u64.. {
        let (allowed, .., id): (u64, Value, Value, Value, Value, String) = redis::cmd("MAILRL.RESERVE")
            .arg(&[key, "1", "PERMINUTE", "4000000000", "PERDAY", "4000000000"])
            .query(redis)?;
        used += allowed;
        tell(used);
        let (ending, back) = match nth {
            _ if nth % 4 == 0 => ("MAILRL.RELEASE", 1),
            _ if nth % 3 == 0 => ("MAILRL.COMMIT", 0),
            _ => continue,
        };
        let ended: u64 = redis::cmd(ending).arg(key).arg(id).query(redis)?;
        used -= back * ended;
        tell(used);
    }
    Ok(())
}

/// Waits until so many calls more are answered, however slow the disk is.
fn wait_for(answered: &AtomicU64, more: u64) {
    let enough = answered.load(Ordering::Relaxed) + more;
    let deadline = Instant::now() + Duration::from_mins(1);
    while answered.load(Ordering::Relaxed) < enough {
        assert!(
            Instant::now() < deadline,
            "{answered:?} of {enough} calls answered"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// Callers at work on a server that does something meanwhile, is killed and started again. What it knows
/// then is what each was told last or, at worst, so long before the kill; a call that was under way may
/// have counted.
fn killed_under_load(
    server: &mut RedisServer,
    may_lose: Duration,
    meanwhile: impl FnOnce(&RedisServer, &AtomicU64),
) {
    let mut killed_at = Instant::now();
    let answered = &AtomicU64::new(0);
    let callers: Vec<_> = (0..CALLERS)
        .map(|nth| (format!("mailrl:{nth}"), server.connection()))
        .collect();
    let callers: Vec<(String, Told)> = thread::scope(|scope| {
        let callers: Vec<_> = callers
            .into_iter()
            .map(|(key, mut redis)| {
                scope.spawn(move || {
                    let mut told = Told::new();
                    let _gone = call(&mut redis, &key, &mut told, answered);
                    (key, told)
                })
            })
            .collect();
        meanwhile(server, answered);
        killed_at = Instant::now();
        server.kill();
        let join = |caller: thread::ScopedJoinHandle<_>| caller.join().expect("no caller panics");
        callers.into_iter().map(join).collect()
    });
    server.restart();
    let mut redis = server.connection();
    for (key, told) in callers {
        let certain = told.partition_point(|&(at, _)| at + may_lose < killed_at);
        let certain = if may_lose.is_zero() { told.len() } else { certain };
        let possible = told[certain.saturating_sub(1)..].iter().map(|&(_, used)| used);
        let (least, most) = (possible.clone().min(), possible.max());
        let (least, most) = (least.expect("a call"), most.expect("a call"));
        let used = redis.used(&key).1;
        assert!(
            (least.saturating_sub(1)..=most + 1).contains(&used),
            "{key}: told {least} to {most}, and is {used}"
        );
    }
}

fn rewrite(redis: &mut Connection) {
    let rewritten = redis.counter("stats", "total_forks");
    redis.ask::<Value>("BGREWRITEAOF");
    let deadline = Instant::now() + Duration::from_secs(20);
    while redis.counter("stats", "total_forks") == rewritten
        || redis.counter("persistence", "aof_rewrite_in_progress") == 1
    {
        assert!(Instant::now() < deadline, "no rewrite");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn with_a_file_written_at_once_a_kill_at_any_moment_forgets_nothing_that_was_answered() {
    let mut server = server(["--appendfsync", "always"]);
    let seed = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..5 {
        let calls = random.random_range(20..300);
        killed_under_load(&mut server, Duration::ZERO, |_, answered| {
            wait_for(answered, calls);
        });
    }
}

#[test]
fn with_a_file_written_each_second_a_kill_forgets_what_is_younger_at_most() {
    let mut server = server(["--appendfsync", "everysec"]);
    // A second, and as long again that Redis waits for a disk that is slow.
    killed_under_load(&mut server, Duration::from_secs(2), |_, answered| {
        thread::sleep(Duration::from_millis(2_500));
        wait_for(answered, 50);
    });
}

#[test]
fn a_rewrite_of_the_file_under_load_forgets_nothing_that_was_answered() {
    for preamble in ["yes", "no"] {
        let mut server = server(["--appendfsync", "always", "--aof-use-rdb-preamble", preamble]);
        killed_under_load(&mut server, Duration::ZERO, |server, answered| {
            for _ in 0..3 {
                wait_for(answered, 20);
                rewrite(&mut server.connection());
            }
            wait_for(answered, 20);
        });
        // And with one that does not come to its end.
        killed_under_load(&mut server, Duration::ZERO, |server, answered| {
            wait_for(answered, 20);
            server.connection().ask::<Value>("BGREWRITEAOF");
        });
    }
}
