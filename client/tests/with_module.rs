//! The limiter against a Redis that has the module.

mod support;

use std::num::NonZeroU32;
use std::time::{Duration, Instant, SystemTime};

use mailrl_client::{
    Decision, Denial, DenialReason, FailOpenCause, Limits, MailRateLimiter, Mailbox, RateLimiterConfig,
    events,
};
use redis::cmd;
use support::mailbox_state::{MailboxState, server, state, used};
use support::{
    DEADLINE, KEY, MAILBOX, PATIENT, allowed, fail_open, is_allowed, limiter, mailbox, patient_limiter,
    reserve, until,
};
use test_support::{CapturedLog, RedisServer};

const FIVE_A_MINUTE: Limits = Limits {
    per_minute: NonZeroU32::new(5),
    recipients_per_day: None,
};

fn denial(decision: Decision) -> Denial {
    match decision {
        Decision::Denied(denial) => denial,
        other => panic!("not denied: {other:?}"),
    }
}

fn configure(server: &RedisServer, name: &str, value: &str) {
    cmd("CONFIG")
        .arg("SET")
        .arg(name)
        .arg(value)
        .exec(&mut server.connection())
        .unwrap();
}

#[tokio::test]
async fn a_reservation_counts_and_says_what_is_left() {
    let server = server();
    let limits = Limits {
        per_minute: NonZeroU32::new(10),
        recipients_per_day: NonZeroU32::new(100),
    };
    let limiter = patient_limiter(&server.url());
    let decision = limiter.check_and_reserve(&mailbox(), 7, &limits).await;
    let Decision::Allowed(reservation) = decision else {
        panic!("not allowed: {decision:?}");
    };
    assert_eq!(reservation.mailbox().as_str(), MAILBOX);
    assert_eq!((reservation.minute_left(), reservation.day_left()), (9, 93));
    assert_eq!(
        state(&server),
        MailboxState {
            open: 1,
            ..used(1, 7)
        }
    );
}

#[tokio::test]
async fn a_commit_keeps_the_budget_and_a_release_gives_it_back_each_once() {
    let server = server();
    let limiter = patient_limiter(&server.url());
    let kept = allowed(&limiter).await;
    let given_back = allowed(&limiter).await;
    assert_eq!(limiter.commit(&kept).await, Ok(true));
    assert_eq!(limiter.release(&given_back).await, Ok(true));
    assert_eq!(state(&server), used(1, 1));
    assert_eq!(limiter.release(&kept).await, Ok(false));
    assert_eq!(limiter.release(&given_back).await, Ok(false));
    assert_eq!(limiter.commit(&given_back).await, Ok(false));
    assert_eq!(state(&server), used(1, 1));
}

#[tokio::test]
async fn a_full_minute_denies_and_is_logged() {
    let log = CapturedLog::start();
    let server = server();
    let config = RateLimiterConfig::new(server.url())
        .concurrent(None)
        .deadline(PATIENT);
    let limiter = MailRateLimiter::new(config).unwrap();
    for _ in 0..5 {
        let decision = limiter.check_and_reserve(&mailbox(), 1, &FIVE_A_MINUTE).await;
        assert!(is_allowed(&decision), "{decision:?}");
    }
    let denial = denial(limiter.check_and_reserve(&mailbox(), 1, &FIVE_A_MINUTE).await);
    assert_eq!(denial.reason, DenialReason::Minute);
    assert!(denial.retry_after > Duration::from_secs(50), "{denial:?}");

    let entries = log.of(events::DENIED);
    assert_eq!(entries.len(), 1);
    let (level, fields) = &entries[0];
    assert_eq!(level, "INFO");
    assert_eq!(fields["mailbox"], MAILBOX);
    assert_eq!(fields["reason"], "minute");
    assert!(fields["retry_after_ms"].as_u64().unwrap() > 50_000, "{fields}");
}

#[tokio::test]
async fn without_limits_of_its_own_a_mailbox_has_those_of_the_module() {
    let server = RedisServer::with_module(["window", "rolling", "per-minute", "1"]);
    let limiter = patient_limiter(&server.url());
    allowed(&limiter).await;
    assert_eq!(denial(reserve(&limiter).await).reason, DenialReason::Minute);
}

#[tokio::test]
async fn the_fourth_send_at_once_is_denied_until_a_place_comes_free() {
    let server = server();
    let limiter = patient_limiter(&server.url());
    let first = allowed(&limiter).await;
    for _ in 0..2 {
        allowed(&limiter).await;
    }
    assert_eq!(denial(reserve(&limiter).await).reason, DenialReason::Concurrent);
    limiter.commit(&first).await.unwrap();
    allowed(&limiter).await;
}

#[tokio::test]
async fn a_reservation_that_nobody_settles_ends_with_its_lease() {
    let server = server();
    let lease = Duration::from_secs(1);
    let config = RateLimiterConfig::new(server.url())
        .concurrent(Some(1))
        .lease(lease)
        .deadline(PATIENT);
    let limiter = MailRateLimiter::new(config).unwrap();
    let reservation = allowed(&limiter).await;
    assert_eq!(denial(reserve(&limiter).await).reason, DenialReason::Concurrent);
    tokio::time::sleep(lease).await;
    allowed(&limiter).await;
    assert_eq!(limiter.release(&reservation).await, Ok(false));
}

#[tokio::test]
async fn a_pause_holds_for_all_processes() {
    let server = server();
    let length = Duration::from_secs(30);
    let until = patient_limiter(&server.url())
        .pause(&mailbox(), length)
        .await
        .unwrap();
    let left = until.duration_since(SystemTime::now()).unwrap();
    assert!(
        left > length / 2 && left <= length + Duration::from_secs(1),
        "{left:?}"
    );

    let other_process = patient_limiter(&server.url());
    let denied = denial(reserve(&other_process).await);
    assert_eq!(denied.reason, DenialReason::Paused);
    assert!(denied.retry_after > length / 2, "{denied:?}");
    other_process.pause(&mailbox(), Duration::ZERO).await.unwrap();
    allowed(&other_process).await;
}

#[tokio::test]
async fn more_recipients_than_a_day_never_fit_and_it_is_logged() {
    let log = CapturedLog::start();
    let server = server();
    let limits = Limits {
        recipients_per_day: NonZeroU32::new(10),
        ..Limits::default()
    };
    let decision = patient_limiter(&server.url())
        .check_and_reserve(&mailbox(), 11, &limits)
        .await;
    let Decision::TooLarge(too_large) = decision else {
        panic!("not too large: {decision:?}");
    };
    assert!(too_large.message.contains("11"), "{too_large}");
    let entries = log.of(events::TOO_LARGE);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].1["recipients"], 11);
}

#[tokio::test]
async fn a_release_is_logged() {
    let log = CapturedLog::start();
    let server = server();
    let limiter = patient_limiter(&server.url());
    let reservation = allowed(&limiter).await;
    limiter.release(&reservation).await.unwrap();
    let entries = log.of(events::RELEASED);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].0, "DEBUG");
    assert_eq!(entries[0].1["reservation"], reservation.id());
}

#[tokio::test]
async fn a_restart_in_between_costs_no_more_than_two_seconds_of_counting() {
    let mut server = server();
    let limiter = limiter(&server.url());
    until(&limiter, is_allowed).await;
    server.kill();
    for _ in 0..10 {
        fail_open(&limiter).await;
    }
    server.restart();
    until(&limiter, is_allowed).await;
}

#[tokio::test]
async fn what_a_frozen_redis_reserves_once_it_thaws_counts_and_blocks_nobody() {
    let server = server();
    let limiter = limiter(&server.url());
    until(&limiter, is_allowed).await;
    let before = state(&server);
    server.freeze();
    for _ in 0..2 {
        assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    }
    server.thaw();
    // Both mails went out: they count, and hold none of the three places any more.
    let after = MailboxState {
        messages: before.messages + 2,
        recipients: before.recipients + 2,
        ..before
    };
    support::eventually("they are committed", || state(&server) == after).await;
    until(&limiter, is_allowed).await;
}

#[tokio::test]
async fn a_redis_that_is_loading_says_so() {
    let server = server();
    configure(&server, "rdbcompression", "no");
    // Each key is larger than the step between two looks at the clients, and takes 10 ms.
    configure(&server, "loading-process-events-interval-bytes", "1024");
    let mut connection = server.connection();
    for number in 0..300 {
        cmd("SET")
            .arg(number)
            .arg(vec![b'x'; 2048])
            .exec(&mut connection)
            .unwrap();
    }
    configure(&server, "key-load-delay", "10000");
    let reload = std::thread::spawn(move || cmd("DEBUG").arg("RELOAD").exec(&mut connection));

    let limiter = patient_limiter(&server.url());
    until(
        &limiter,
        |decision| matches!(decision, Decision::FailOpen(failure) if failure.cause == FailOpenCause::Loading),
    )
    .await;
    tokio::task::spawn_blocking(|| reload.join())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    until(&limiter, is_allowed).await;
}

#[tokio::test]
async fn a_replica_that_became_a_primary_is_used_again() {
    let server = server();
    let limiter = patient_limiter(&server.url());
    allowed(&limiter).await;
    let replicate = |host: &str, port: &str| {
        cmd("REPLICAOF")
            .arg(host)
            .arg(port)
            .exec(&mut server.connection())
            .unwrap();
    };
    replicate("127.0.0.1", "1");
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::ReadOnly);
    replicate("NO", "ONE");
    until(&limiter, is_allowed).await;
}

#[tokio::test]
async fn a_redis_without_memory_fails_open_and_still_takes_settlements() {
    let server = server();
    let limiter = patient_limiter(&server.url());
    let reservation = allowed(&limiter).await;
    configure(&server, "maxmemory", "1");
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::OutOfMemory);
    assert_eq!(limiter.release(&reservation).await, Ok(true));
}

#[tokio::test]
async fn missing_permissions_fail_open() {
    let server = server();
    cmd("ACL")
        .arg(&["SETUSER", "mailer", "on", ">pass", "+@all", "~other:*"])
        .exec(&mut server.connection())
        .unwrap();
    let url = format!("redis://mailer:pass@127.0.0.1:{}", server.port());
    assert_eq!(
        fail_open(&patient_limiter(&url)).await.cause,
        FailOpenCause::NoPermission
    );
}

#[tokio::test]
async fn a_missing_password_fails_open() {
    let server = RedisServer::builder()
        .module([])
        .arguments(["--requirepass", "secret"])
        .start();
    assert_eq!(
        fail_open(&patient_limiter(&server.url())).await.cause,
        FailOpenCause::NoAuth
    );
}

#[tokio::test]
async fn a_foreign_value_fails_open_for_its_mailbox_alone() {
    let server = server();
    let limiter = patient_limiter(&server.url());
    for (set_up, cause) in [
        (
            cmd("LPUSH").arg(KEY).arg("x").to_owned(),
            FailOpenCause::WrongType,
        ),
        (cmd("SET").arg(KEY).arg("x").to_owned(), FailOpenCause::BadState),
    ] {
        set_up.exec(&mut server.connection()).unwrap();
        for _ in 0..5 {
            assert_eq!(fail_open(&limiter).await.cause, cause);
        }
        let other = Mailbox::new("other@example.com");
        let decision = limiter.check_and_reserve(&other, 1, &Limits::default()).await;
        assert!(is_allowed(&decision), "{decision:?}");
    }
}

#[tokio::test]
async fn a_decision_takes_a_small_part_of_its_deadline() {
    let server = server();
    let limiter = patient_limiter(&server.url());
    let mut took = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        let reservation = allowed(&limiter).await;
        took.push(start.elapsed());
        limiter.release(&reservation).await.unwrap();
    }
    took.sort();
    let median = took[took.len() / 2];
    assert!(median < DEADLINE / 5, "{median:?}");
}
