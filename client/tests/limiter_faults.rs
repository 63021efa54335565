//! Whatever Redis does, mail goes out within the deadline, and Redis's return is noticed.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mailrl_client::{Decision, FailOpenCause, Limits, events};
use support::fake_redis::{FakeRedis, Reply, allowed, line};
use support::other_program::{HTTP, OtherProgram};
use support::{
    DEADLINE, KEY, MAILBOX, SLACK, eventually, fail_open, is_allowed, is_answered_without_module, limiter,
    mailbox, patient_limiter, reserve, sooner_or_later, until,
};
use test_support::{CapturedLog, RedisServer, free_port};

fn server_without_module() -> RedisServer {
    RedisServer::builder().start()
}

#[test]
fn a_limiter_is_made_outside_a_runtime_and_without_redis() {
    let _ = limiter(&format!("redis://127.0.0.1:{}", free_port()));
}

#[tokio::test]
async fn a_frozen_redis_costs_the_deadline_and_then_nothing() {
    let server = server_without_module();
    let limiter = limiter(&server.url());
    sooner_or_later(&limiter, is_answered_without_module).await;
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
    let limiter = patient_limiter(&server.url());
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
    let program = OtherProgram::start(port, HTTP).await;
    let limiter = patient_limiter(&format!("redis://127.0.0.1:{port}"));
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::NotRedis);
    for _ in 0..10 {
        fail_open(&limiter).await;
    }
    program.stop().await;
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
        let program = OtherProgram::start(port, answer).await;
        let limiter = limiter(&format!("redis://127.0.0.1:{port}"));
        for _ in 0..3 {
            fail_open(&limiter).await;
        }
        program.stop().await;
    }
}

#[tokio::test]
async fn a_redis_without_the_module_is_told_apart() {
    let server = server_without_module();
    let failure = fail_open(&patient_limiter(&server.url())).await;
    assert_eq!(failure.cause, FailOpenCause::ModuleMissing);
    assert!(failure.error.contains("unknown command"), "{}", failure.error);
}

#[tokio::test]
async fn a_wrong_password_is_told_apart_and_noticed_when_it_is_right() {
    let server = RedisServer::builder().arguments(["--requirepass", "old"]).start();
    let limiter = patient_limiter(&format!("redis://:new@127.0.0.1:{}", server.port()));
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
        fail_open(&patient_limiter(&server.url())).await.cause,
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
    eventually("the late reservation is settled", || server.commands().len() > 1).await;
    assert_eq!(server.commands()[1], format!("MAILRL.COMMIT {KEY} 17-3"));
}

#[tokio::test]
async fn a_reservation_whose_caller_went_away_is_released() {
    let server = FakeRedis::start(|command| {
        if command.starts_with("MAILRL.RESERVE") {
            Reply::After(3 * DEADLINE, allowed("17-3"))
        } else {
            line(":1")
        }
    })
    .await;
    let limiter = patient_limiter(&server.url());
    tokio::select! {
        decision = reserve(&limiter) => panic!("the caller did not go away: {decision:?}"),
        () = eventually("Redis was asked", || server.commands().len() == 1) => {}
    }
    eventually("the reservation is settled", || server.commands().len() > 1).await;
    assert_eq!(server.commands()[1], format!("MAILRL.RELEASE {KEY} 17-3"));
}

#[tokio::test]
async fn a_thousand_failures_are_logged_once_a_second() {
    let log = CapturedLog::start();
    let limiter = patient_limiter(&format!("redis://127.0.0.1:{}", free_port()));
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
