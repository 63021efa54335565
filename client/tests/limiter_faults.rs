//! Whatever Redis does, mail goes out within the deadline, and Redis's return is noticed.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mailrl_client::{Decision, FailOpenCause, Limits, events};
use support::fake_redis::{FakeRedis, Reply, allowed, line};
use support::log::CapturedLog;
use support::{DEADLINE, KEY, MAILBOX, SLACK, fail_open, limiter, mailbox, patient_limiter, reserve, until};
use test_support::{RedisServer, free_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn is_allowed(decision: &Decision) -> bool {
    matches!(decision, Decision::Allowed(_))
}

/// A server without the module answers, and that is its answer.
fn is_answered_without_module(decision: &Decision) -> bool {
    matches!(decision, Decision::FailOpen(failure) if failure.cause == FailOpenCause::ModuleMissing)
}

fn server_without_module() -> RedisServer {
    RedisServer::builder().start()
}

/// A program that takes connections and answers whatever it is sent with these bytes.
async fn other_program(port: u16, answer: &'static [u8]) -> tokio::task::JoinHandle<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {
                    let _ = stream.write_all(answer).await;
                }
            });
        }
    })
}

#[test]
fn a_limiter_is_made_outside_a_runtime_and_without_redis() {
    let _ = limiter(&format!("redis://127.0.0.1:{}", free_port()));
}

#[tokio::test]
async fn a_frozen_redis_costs_the_deadline_and_then_nothing() {
    let server = server_without_module();
    let limiter = limiter(&server.url());
    assert!(is_answered_without_module(&reserve(&limiter).await));
    server.freeze();
    for _ in 0..3 {
        assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    }
    let start = Instant::now();
    for _ in 0..100 {
        assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::CircuitOpen);
    }
    assert!(start.elapsed() < DEADLINE, "took {:?}", start.elapsed());
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.thaw();
    until(&limiter, is_answered_without_module).await;
}

#[tokio::test]
async fn a_killed_redis_is_unreachable_and_noticed_when_it_is_back() {
    let mut server = server_without_module();
    let limiter = limiter(&server.url());
    assert!(is_answered_without_module(&reserve(&limiter).await));
    server.kill();
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Unreachable);
    for _ in 0..20 {
        fail_open(&limiter).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.restart();
    until(&limiter, is_answered_without_module).await;
}

#[tokio::test]
async fn a_process_that_starts_before_redis_finds_it_later() {
    let port = free_port();
    let limiter = limiter(&format!("redis://127.0.0.1:{port}"));
    for _ in 0..10 {
        fail_open(&limiter).await;
    }
    let _server = RedisServer::builder().port(port).start();
    until(&limiter, is_answered_without_module).await;
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_unreachable() {
    let cause = fail_open(&limiter("redis://redis.invalid")).await.cause;
    assert!(
        matches!(cause, FailOpenCause::Unreachable | FailOpenCause::Timeout),
        "{cause}"
    );
}

#[tokio::test]
async fn a_port_that_takes_connections_and_says_nothing_is_a_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let limiter = limiter(&format!("redis://{}", listener.local_addr().unwrap()));
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
}

#[tokio::test]
async fn another_program_on_the_port_is_told_apart_and_redis_found_once_it_is_gone() {
    let port = free_port();
    let http = other_program(port, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
    let limiter = limiter(&format!("redis://127.0.0.1:{port}"));
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::NotRedis);
    for _ in 0..10 {
        fail_open(&limiter).await;
    }
    http.abort();
    let _ = http.await;
    let _server = RedisServer::builder().port(port).start();
    until(&limiter, is_answered_without_module).await;
}

#[tokio::test]
async fn garbage_on_the_port_never_does_more_than_fail_open() {
    let garbage: [&[u8]; 7] = [
        b"\0\xff\xfe\x01\x80\x80",
        b"*-7\r\n",
        b"*1000000000\r\n",
        b"$1000000000000\r\n",
        b"$5\r\nab",
        b":99999999999999999999\r\n",
        b"\r\n\r\n\r\n",
    ];
    for answer in garbage {
        let port = free_port();
        let program = other_program(port, answer).await;
        let limiter = limiter(&format!("redis://127.0.0.1:{port}"));
        for _ in 0..3 {
            fail_open(&limiter).await;
        }
        program.abort();
    }
}

#[tokio::test]
async fn a_redis_without_the_module_is_told_apart() {
    let server = server_without_module();
    let failure = fail_open(&limiter(&server.url())).await;
    assert_eq!(failure.cause, FailOpenCause::ModuleMissing);
    assert!(failure.error.contains("unknown command"), "{}", failure.error);
}

#[tokio::test]
async fn a_wrong_password_is_told_apart_and_noticed_when_it_is_right() {
    let server = RedisServer::builder().arguments(["--requirepass", "old"]).start();
    let limiter = limiter(&format!("redis://:new@127.0.0.1:{}", server.port()));
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::NoAuth);
    let mut operator = redis::Client::open(format!("redis://:old@127.0.0.1:{}", server.port()))
        .and_then(|client| client.get_connection())
        .unwrap();
    redis::cmd("CONFIG")
        .arg("SET")
        .arg("requirepass")
        .arg("new")
        .exec(&mut operator)
        .unwrap();
    until(&limiter, is_answered_without_module).await;
}

#[tokio::test]
async fn every_error_reply_but_toolarge_lets_the_mail_out() {
    let replies = [
        (
            "-LOADING Redis is loading the dataset in memory",
            FailOpenCause::Loading,
        ),
        (
            "-READONLY You can't write against a read only replica.",
            FailOpenCause::ReadOnly,
        ),
        (
            "-OOM command not allowed when used memory > 'maxmemory'.",
            FailOpenCause::OutOfMemory,
        ),
        ("-NOAUTH Authentication required.", FailOpenCause::NoAuth),
        (
            "-NOPERM No permissions to run the 'mailrl.reserve' command",
            FailOpenCause::NoPermission,
        ),
        ("-WRONGTYPE the key holds another type", FailOpenCause::WrongType),
        ("-BADSTATE the key holds no mailbox", FailOpenCause::BadState),
        ("-ERR PERMINUTE is out of range", FailOpenCause::Refused),
        ("+OK", FailOpenCause::UnexpectedReply),
    ];
    for (reply, cause) in replies {
        let server = FakeRedis::start(move |_| line(reply)).await;
        let limiter = patient_limiter(&server.url());
        assert_eq!(fail_open(&limiter).await.cause, cause);
        assert_eq!(limiter.counts().fail_open, 1);
    }
    let server = FakeRedis::start(|_| line("-TOOLARGE 600 recipients, 500 a day")).await;
    let limiter = patient_limiter(&server.url());
    let decision = reserve(&limiter).await;
    assert!(
        matches!(&decision, Decision::TooLarge(error) if error.message.contains("600")),
        "{decision:?}"
    );
    assert_eq!(limiter.counts().too_large, 1);
}

#[tokio::test]
async fn a_connection_that_closes_in_the_middle_of_a_reply_is_unreachable() {
    let server = FakeRedis::start(|_| Reply::BytesThenClose("*6\r\n:1\r\n$2\r\nok".into())).await;
    assert_eq!(
        fail_open(&limiter(&server.url())).await.cause,
        FailOpenCause::Unreachable
    );
}

#[tokio::test]
async fn no_recipients_is_an_error_before_anything_is_sent() {
    let server = FakeRedis::start(|_| Reply::Bytes(allowed("1-1"))).await;
    let limiter = patient_limiter(&server.url());
    let decision = limiter.check_and_reserve(&mailbox(), 0, &Limits::default()).await;
    assert!(matches!(decision, Decision::FailOpen(failure) if failure.cause == FailOpenCause::NoRecipients));
    assert!(server.connections().is_empty());
}

#[tokio::test]
async fn a_connection_that_broke_while_idle_costs_no_decision() {
    let server = FakeRedis::start(|_| Reply::BytesThenClose(allowed("1-1"))).await;
    let limiter = patient_limiter(&server.url());
    for _ in 0..3 {
        assert!(is_allowed(&reserve(&limiter).await));
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    assert_eq!(server.connections().len(), 3);
}

#[tokio::test]
async fn a_replica_that_became_of_the_primary_is_left_for_the_new_one() {
    // Behind one address: first the old primary, now a replica, then the new one.
    let readonly_left = AtomicUsize::new(1);
    let server = FakeRedis::start(move |_| {
        let old = readonly_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match old {
            Ok(_) => line("-READONLY You can't write against a read only replica."),
            Err(_) => Reply::Bytes(allowed("1-1")),
        }
    })
    .await;
    until(&limiter(&server.url()), is_allowed).await;
    assert_eq!(server.connections().len(), 2);
}

#[tokio::test]
async fn a_connection_that_the_network_swallows_is_replaced() {
    // The first connection answers once and is never heard of again, as when a host is gone.
    let first = Arc::new(AtomicBool::new(true));
    let server = FakeRedis::start({
        let first = Arc::clone(&first);
        let answered = AtomicBool::new(false);
        move |_| {
            if first.load(Ordering::SeqCst) && answered.swap(true, Ordering::SeqCst) {
                first.store(false, Ordering::SeqCst);
                return Reply::Silence;
            }
            Reply::Bytes(allowed("1-1"))
        }
    })
    .await;
    let limiter = limiter(&server.url());
    assert!(is_allowed(&reserve(&limiter).await));
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    until(&limiter, is_allowed).await;
    assert_eq!(server.connections().len(), 2);
}

#[tokio::test]
async fn a_connection_that_only_stalled_is_kept() {
    let questions = AtomicUsize::new(0);
    let server = FakeRedis::start(move |_| match questions.fetch_add(1, Ordering::SeqCst) {
        1 => Reply::After(DEADLINE * 3 / 2, allowed("1-1")),
        _ => Reply::Bytes(allowed("1-1")),
    })
    .await;
    let limiter = limiter(&server.url());
    until(&limiter, is_allowed).await;
    // Idle for long enough to be given up at the first question that goes unanswered.
    tokio::time::sleep(3 * DEADLINE).await;
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    // The answer comes after all, before another connection may be dialled.
    tokio::time::sleep(4 * DEADLINE).await;
    until(&limiter, is_allowed).await;
    assert_eq!(server.connections().len(), 1);
}

#[tokio::test]
async fn a_handshake_slower_than_the_deadline_comes_to_an_end_all_the_same() {
    let greeting = || Reply::After(DEADLINE, "+OK\r\n".into());
    let server = FakeRedis::start_with_greeting(greeting, |_| Reply::Bytes(allowed("1-1"))).await;
    let limiter = limiter(&server.url());
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    until(&limiter, is_allowed).await;
    assert_eq!(server.connections().len(), 1);
}

#[tokio::test]
async fn a_handshake_goes_on_while_nobody_waits_for_it() {
    // A server that knows no users: the handshake takes a second round, which somebody has to begin.
    let server = FakeRedis::start(|command| match command {
        "AUTH user pass" => Reply::After(
            DEADLINE * 3 / 2,
            "-ERR wrong number of arguments for 'auth' command\r\n".into(),
        ),
        "AUTH pass" => line("+OK"),
        _ => line(":1500"),
    })
    .await;
    let limiter = limiter(&server.url().replace("redis://", "redis://user:pass@"));
    let mailbox = mailbox();
    let paused = limiter.pause(&mailbox, DEADLINE).await;
    assert_eq!(paused, Err(FailOpenCause::Timeout));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let paused = limiter.pause(&mailbox, DEADLINE).await;
    assert!(paused.is_ok(), "{paused:?}");
    assert_eq!(server.connections().len(), 1);
}

#[tokio::test]
async fn a_reservation_that_is_answered_after_the_fail_open_is_committed() {
    let server = FakeRedis::start(|command| {
        if command.starts_with("MAILRL.RESERVE") {
            Reply::After(3 * DEADLINE, allowed("17-3"))
        } else {
            line(":1")
        }
    })
    .await;
    let limiter = limiter(&server.url());
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    support::eventually("the late reservation is settled", || server.commands().len() > 1).await;
    assert_eq!(server.commands()[1], format!("MAILRL.COMMIT {KEY} 17-3"));
}

#[tokio::test]
async fn a_reservation_whose_caller_went_away_is_released() {
    let server = FakeRedis::start(|command| {
        if command.starts_with("MAILRL.RESERVE") {
            Reply::After(DEADLINE / 2, allowed("17-3"))
        } else {
            line(":1")
        }
    })
    .await;
    let limiter = limiter(&server.url());
    let gave_up = tokio::time::timeout(DEADLINE / 4, reserve(&limiter)).await;
    assert!(gave_up.is_err());
    support::eventually("the reservation is settled", || server.commands().len() > 1).await;
    assert_eq!(server.commands()[1], format!("MAILRL.RELEASE {KEY} 17-3"));
}

#[tokio::test]
async fn a_thousand_failures_are_logged_once_a_second() {
    let log = CapturedLog::start();
    let limiter = limiter(&format!("redis://127.0.0.1:{}", free_port()));
    let start = Instant::now();
    for _ in 0..1000 {
        fail_open(&limiter).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seconds = start.elapsed().as_secs();
    tokio::time::sleep(Duration::from_secs(1)).await;
    fail_open(&limiter).await;

    let entries = log.of(events::REDIS_ERROR);
    let expected = usize::try_from(seconds).unwrap() + 2;
    assert!(
        (2..=expected).contains(&entries.len()),
        "{} entries in {seconds} s",
        entries.len()
    );
    let suppressed = entries
        .iter()
        .map(|(_, fields)| fields["suppressed"].as_u64().unwrap());
    assert_eq!(
        suppressed.sum::<u64>() + u64::try_from(entries.len()).unwrap(),
        1001
    );
    let (level, fields) = &entries[0];
    assert_eq!(level, "WARN");
    assert_eq!(fields["mailbox"], MAILBOX);
    assert_eq!(fields["cause"], "unreachable");
    assert!(fields["error"].as_str().unwrap().contains("refused"), "{fields}");
}

#[tokio::test]
async fn the_return_of_redis_is_logged() {
    let log = CapturedLog::start();
    let fails = Arc::new(AtomicBool::new(true));
    let server = FakeRedis::start({
        let fails = Arc::clone(&fails);
        move |_| {
            if fails.load(Ordering::SeqCst) {
                line("-OOM no room")
            } else {
                Reply::Bytes(allowed("1-1"))
            }
        }
    })
    .await;
    let limiter = patient_limiter(&server.url());
    fail_open(&limiter).await;
    fail_open(&limiter).await;
    fails.store(false, Ordering::SeqCst);
    assert!(is_allowed(&reserve(&limiter).await));
    assert!(is_allowed(&reserve(&limiter).await));
    let entries = log.of(events::RECOVERED);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].0, "INFO");
    assert_eq!(entries[0].1["failures"], 2);
}

/// The most connections that were made within any one second.
fn most_in_a_second(connections: &[Instant]) -> usize {
    let within = |start: Instant| {
        connections
            .iter()
            .filter(|at| **at >= start && at.duration_since(start) < Duration::from_millis(990))
            .count()
    };
    connections.iter().map(|start| within(*start)).max().unwrap_or(0)
}

async fn call_for_three_seconds(server: &FakeRedis) {
    let limiter = patient_limiter(&server.url());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        let calls = (0..20).map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { reserve(&limiter).await })
        });
        for call in calls.collect::<Vec<_>>() {
            let _ = call.await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_redis_that_hangs_up_is_not_stormed() {
    let server = FakeRedis::start_with_greeting(
        || Reply::BytesThenClose(String::new()),
        |_| unreachable!("nobody gets so far"),
    )
    .await;
    call_for_three_seconds(&server).await;
    let connections = server.connections();
    assert!(
        (2..=7).contains(&connections.len()),
        "{} connections",
        connections.len()
    );
    assert!(most_in_a_second(&connections) <= 2);
}

#[tokio::test]
async fn a_redis_that_hangs_up_after_each_answer_is_not_stormed() {
    let server = FakeRedis::start(|_| Reply::BytesThenClose(allowed("1-1"))).await;
    call_for_three_seconds(&server).await;
    let connections = server.connections();
    assert!(
        (2..=7).contains(&connections.len()),
        "{} connections",
        connections.len()
    );
    assert!(most_in_a_second(&connections) <= 2);
}

#[tokio::test]
async fn many_calls_at_once_share_one_connection() {
    let server = FakeRedis::start(|_| Reply::Bytes(allowed("1-1"))).await;
    let limiter = patient_limiter(&server.url());
    let calls = (0..200).map(|_| {
        let limiter = limiter.clone();
        tokio::spawn(async move { reserve(&limiter).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(is_allowed(&call.await.unwrap()));
    }
    assert_eq!(server.connections().len(), 1);
    assert_eq!(limiter.counts().allowed, 200);
}

#[tokio::test]
async fn settling_takes_no_longer_than_the_deadline_either() {
    let server = FakeRedis::allowing("1-1", Reply::Silence).await;
    let limiter = limiter(&server.url());
    let reservation = support::allowed(&limiter).await;
    for settle in [0, 1, 2] {
        let start = Instant::now();
        let cause = match settle {
            0 => limiter.commit(&reservation).await.unwrap_err(),
            1 => limiter.release(&reservation).await.unwrap_err(),
            _ => limiter.pause(&mailbox(), DEADLINE).await.unwrap_err(),
        };
        assert_eq!(cause, FailOpenCause::Timeout);
        assert!(start.elapsed() < DEADLINE + SLACK);
    }
}
