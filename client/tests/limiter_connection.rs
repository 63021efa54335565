//! The one connection: shared by all calls, kept when it stalls, replaced when it breaks, never stormed.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mailrl_client::FailOpenCause;
use support::fake_redis::{FakeRedis, Reply, allowed, line};
use support::{
    DEADLINE, fail_open, is_allowed, limiter, mailbox, most_in_a_second, patient_limiter, reserve, until,
};

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
    // The next question is the last that arrives on its connection, as when a host is gone.
    let swallows = Arc::new(AtomicBool::new(false));
    let server = FakeRedis::start({
        let swallows = Arc::clone(&swallows);
        move |_| {
            if swallows.swap(false, Ordering::SeqCst) {
                Reply::Silence
            } else {
                Reply::Bytes(allowed("1-1"))
            }
        }
    })
    .await;
    let limiter = limiter(&server.url());
    until(&limiter, is_allowed).await;
    swallows.store(true, Ordering::SeqCst);
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
