//! The limiter on a Redis cluster: every mailbox on its node, also while that changes.

mod support;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mailrl_client::{Decision, Limits, MailRateLimiter, Mailbox, RateLimiterConfig};
use redis::cmd;
use support::{NOTICED_WITHIN, PATIENT};
use test_support::{Calls, RedisCluster, RedisServer};

/// After so long without a node the others take it for gone.
const NODE_TIMEOUT_MS: u64 = 1_000;

const MAILBOXES: usize = 1_000;
const CLIENTS: usize = 20;

/// What a busy machine may add to a promise.
const ROOM: Duration = Duration::from_secs(2);

fn config(cluster: &RedisCluster) -> RateLimiterConfig {
    // One is enough to find all others.
    RateLimiterConfig::cluster([cluster.nodes[1].url()]).concurrent(None)
}

fn patient(cluster: &RedisCluster) -> MailRateLimiter {
    MailRateLimiter::new(config(cluster).deadline(PATIENT)).expect("a valid configuration")
}

fn per_minute(limit: u32) -> Limits {
    Limits {
        per_minute: NonZeroU32::new(limit),
        recipients_per_day: NonZeroU32::new(1_000_000),
    }
}

/// Names that are hard on hash tags, on separators and on text.
fn mailbox(number: usize) -> Mailbox {
    Mailbox::new(match number % 6 {
        0 => format!("{{team}}{number}@example.com"),
        1 => format!("a}}b{{c{number}@example.com"),
        2 => format!("{{}}empty{number}@example.com"),
        3 => format!("two words {number}@example.com"),
        4 => format!("müller-{number}-邮件@example.com"),
        _ => format!("plain{number}@example.com"),
    })
}

fn slot(node: &RedisServer, mailbox: &Mailbox) -> u64 {
    let mut command = cmd("CLUSTER");
    command.arg("KEYSLOT").arg(mailbox.key());
    command.query(&mut node.connection()).expect("a slot")
}

/// Messages of the minute, by the node that has the mailbox.
fn counted(node: &RedisServer, mailbox: &Mailbox) -> u64 {
    let mut command = cmd("MAILRL.STATUS");
    command.arg(mailbox.key());
    let status: std::collections::HashMap<String, redis::Value> =
        command.query(&mut node.connection()).expect("a status");
    let minute: std::collections::HashMap<String, redis::Value> =
        redis::from_redis_value(status["minute"].clone()).expect("a window");
    redis::from_redis_value(minute["used"].clone()).expect("a count")
}

#[tokio::test]
async fn a_thousand_mailboxes_over_all_slots_are_counted_each_by_its_node() {
    let cluster = RedisCluster::start(3, NODE_TIMEOUT_MS);
    let limiter = patient(&cluster);
    for round in 1..=2 {
        for number in 0..MAILBOXES {
            let decision = limiter
                .check_and_reserve(&mailbox(number), 1, &per_minute(2))
                .await;
            assert!(
                matches!(decision, Decision::Allowed(_)),
                "{round} {number}: {decision:?}"
            );
        }
    }
    for number in 0..MAILBOXES {
        let decision = limiter
            .check_and_reserve(&mailbox(number), 1, &per_minute(2))
            .await;
        assert!(matches!(decision, Decision::Denied(_)), "{number}: {decision:?}");
    }
    let mut keys = 0;
    for node in &cluster.nodes[..3] {
        let on_this_node: u64 = node.connection().ask("DBSIZE");
        assert!(on_this_node > 100, "{on_this_node} mailboxes on one node");
        keys += on_this_node;
    }
    assert_eq!(keys, 1_000);
    for number in (0..MAILBOXES).step_by(7) {
        let owner = cluster.owner(slot(&cluster.nodes[0], &mailbox(number)), None);
        assert_eq!(counted(&cluster.nodes[owner], &mailbox(number)), 2, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_limit_is_exceeded_while_slots_move_under_twenty_clients() {
    const LIMIT: u32 = 120;
    const BUSY: usize = 12;
    let cluster = Arc::new(RedisCluster::start(3, 5_000));
    let allowed: Arc<Vec<AtomicU64>> = Arc::new((0..BUSY).map(|_| AtomicU64::new(0)).collect());
    let failed_open = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = (0..CLIENTS).map(|client| {
        // A process each: what one learns the others do not know.
        let limiter = patient(&cluster);
        let (allowed, is_over) = (Arc::clone(&allowed), Arc::clone(&is_over));
        let failed_open = Arc::clone(&failed_open);
        tokio::spawn(async move {
            let mut turn = client;
            while !is_over.load(Ordering::Relaxed) {
                turn += 1;
                let number = turn % BUSY;
                match limiter
                    .check_and_reserve(&mailbox(number), 1, &per_minute(LIMIT))
                    .await
                {
                    Decision::Allowed(_) => {
                        allowed[number].fetch_add(1, Ordering::Relaxed);
                    }
                    Decision::FailOpen(_) => {
                        failed_open.fetch_add(1, Ordering::Relaxed);
                    }
                    Decision::Denied(_) => {}
                    Decision::TooLarge(error) => panic!("{error}"),
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    let moving = Arc::clone(&cluster);
    let moves = tokio::task::spawn_blocking(move || {
        for round in 1..=3 {
            for number in 0..BUSY {
                let slot = slot(&moving.nodes[0], &mailbox(number));
                moving.migrate(slot, (moving.owner(slot, None) + round % 2 + 1) % 3);
            }
        }
    });
    moves.await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    println!(
        "slots moved: {:?} allowed of {LIMIT} each, {} failed open",
        allowed,
        failed_open.load(Ordering::Relaxed)
    );
    // A slot on its way is followed, so that no mail goes out uncounted.
    assert_eq!(failed_open.load(Ordering::Relaxed), 0);
    for (number, allowed) in allowed.iter().enumerate() {
        let allowed = allowed.load(Ordering::Relaxed);
        assert!(allowed <= u64::from(LIMIT), "{number}: {allowed} allowed");
        let owner = cluster.owner(slot(&cluster.nodes[0], &mailbox(number)), None);
        let counted = counted(&cluster.nodes[owner], &mailbox(number));
        assert!(counted >= allowed, "{number}: {counted} counted of {allowed}");
    }
}

/// How a primary leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Killed,
    /// As when its host or the way to it is gone: no connection breaks.
    InSilence,
}

/// Reserves without end, and says how often it was allowed before Redis first did not answer.
async fn allowed_until_it_fails(limiter: MailRateLimiter, mailbox: Mailbox) -> u64 {
    let mut allowed = 0;
    while let Decision::Allowed(_) = limiter
        .check_and_reserve(&mailbox, 1, &per_minute(1_000_000))
        .await
    {
        allowed += 1;
    }
    allowed
}

async fn fail_over(leaves: Leaves) {
    let mut cluster = RedisCluster::start(3, NODE_TIMEOUT_MS);
    // One slot, so one node; the one is counted, the other finds out.
    let (busy, probe) = (
        Mailbox::new("{team}busy@example.com"),
        Mailbox::new("{team}probe@example.com"),
    );
    let limits = per_minute(1_000_000);
    let slot = slot(&cluster.nodes[0], &busy);
    let primary = cluster.owner(slot, None);
    let limiter = MailRateLimiter::new(config(&cluster)).unwrap();
    while !matches!(
        limiter.check_and_reserve(&probe, 1, &limits).await,
        Decision::Allowed(_)
    ) {}

    let clients = (0..CLIENTS).map(|_| {
        let config = config(&cluster).deadline(Duration::from_millis(500));
        let limiter = MailRateLimiter::new(config).unwrap();
        tokio::spawn(allowed_until_it_fails(limiter, busy.clone()))
    });
    let clients: Vec<_> = clients.collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    match leaves {
        Leaves::Killed => cluster.nodes[primary].kill(),
        Leaves::InSilence => cluster.nodes[primary].freeze(),
    }
    let left = Instant::now();
    let (mut promoted, mut failed_open, mut longest) = (None, 0, Duration::ZERO);
    let back = loop {
        if promoted.is_none() && cluster.owner(slot, Some(primary)) != primary {
            promoted = Some(left.elapsed());
        }
        let start = Instant::now();
        let decision = limiter.check_and_reserve(&probe, 1, &limits).await;
        longest = longest.max(start.elapsed());
        match decision {
            // An answer that was under way when the primary left comes too early.
            Decision::Allowed(_) if failed_open > 0 => break left.elapsed(),
            Decision::Allowed(_) => {}
            Decision::FailOpen(_) => failed_open += 1,
            other => panic!("{other:?}"),
        }
        assert!(left.elapsed() < Duration::from_secs(30), "never back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let after = back.saturating_sub(promoted.unwrap_or(back));
    let mut told = 0;
    for client in clients {
        told += client.await.unwrap();
    }
    let successor = cluster.owner(slot, Some(primary));
    let kept = counted(&cluster.nodes[successor], &busy);
    let lost = told.saturating_sub(kept);
    println!(
        "{leaves:?}: promoted after {promoted:?}, back {after:?} later, {failed_open} failed open, longest \
         call {longest:?}, {lost} of {told} reservations lost"
    );
    assert!(longest < ROOM, "a call took {longest:?}");
    assert!(after < NOTICED_WITHIN + ROOM, "back after {after:?}");
    // What each client was told last may be lost: its answer and the replica's copy leave together.
    let at_most = u64::try_from(CLIENTS).unwrap();
    assert!(lost <= at_most, "{lost} of {told} lost");
}

#[tokio::test]
async fn a_killed_primarys_successor_is_found() {
    fail_over(Leaves::Killed).await;
}

#[tokio::test]
async fn the_successor_of_a_primary_that_went_silent_is_found() {
    fail_over(Leaves::InSilence).await;
}
