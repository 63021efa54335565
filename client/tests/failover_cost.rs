//! What a failover costs: the reservations that the replica had not heard of, and how
//! `min-replicas-to-write` bounds them.

mod support;

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use mailrl_client::{Decision, FailOpenCause, Limits, MailRateLimiter, RateLimiterConfig};
use support::faulty_network::{Fault, FaultyNetwork};
use support::{PATIENT, mailbox};
use test_support::{Calls, RedisServer};

/// How long the primary goes on without being heard by its replica.
const ALONE: Duration = Duration::from_secs(5);

/// What was told to the client while the primary was alone.
struct Cost {
    /// Reservations that the promoted replica does not know.
    lost: u64,
    /// Mails that went out uncounted, and were known to.
    failed_open: u64,
    calls: u64,
}

fn server<const N: usize>(arguments: [&str; N]) -> RedisServer {
    RedisServer::builder()
        .arguments(["--repl-diskless-sync-delay", "0"])
        .arguments(["--repl-ping-replica-period", "1"])
        .arguments(arguments)
        .module(["window", "rolling"])
        .start()
}

async fn cost_of_a_primary_alone<const N: usize>(arguments: [&str; N]) -> Cost {
    let (mut primary, replica) = (server(arguments), server([]));
    let network = FaultyNetwork::before(primary.port()).await;
    let follow = format!("REPLICAOF 127.0.0.1 {}", network.port());
    // The network between the two is in this test's hands, and has to go on meanwhile.
    tokio::task::block_in_place(|| {
        replica.connection().ask::<()>(&follow);
        primary.wait_for_replica(&replica);
    });
    let config = RateLimiterConfig::new(primary.url())
        .deadline(PATIENT)
        .concurrent(None);
    let limiter = MailRateLimiter::new(config).unwrap();
    let limits = Limits {
        per_minute: NonZeroU32::new(100_000),
        recipients_per_day: NonZeroU32::new(100_000),
    };
    network.set(Fault::BlackHole);
    let (mut allowed, mut failed_open) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < ALONE {
        match limiter.check_and_reserve(&mailbox(), 1, &limits).await {
            Decision::Allowed(_) => allowed += 1,
            Decision::FailOpen(failure) => {
                assert_eq!(failure.cause, FailOpenCause::ReadOnly, "{failure}");
                failed_open += 1;
            }
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    primary.kill();
    replica.connection().ask::<()>("REPLICAOF NO ONE");
    let (kept, _) = replica.connection().used("mailrl:orders@example.com");
    let cost = Cost {
        lost: allowed - kept,
        failed_open,
        calls: allowed + failed_open,
    };
    println!(
        "{arguments:?}: {} calls in {ALONE:?} alone, {} lost, {} failed open",
        cost.calls, cost.lost, cost.failed_open
    );
    cost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_a_primary_counts_alone_is_lost_with_it() {
    let cost = cost_of_a_primary_alone([]).await;
    assert_eq!(cost.failed_open, 0);
    assert_eq!(cost.lost, cost.calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_needs_a_replica_counts_alone_for_its_greatest_lag_only() {
    let cost = cost_of_a_primary_alone(["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"]).await;
    // A second of lag, and one more until it is noticed; then mail fails open, and is known to.
    assert!(cost.failed_open > 0);
    assert!(
        cost.lost < cost.calls * 4 / 5,
        "{} of {} lost",
        cost.lost,
        cost.calls
    );
}
