//! The limiter behind sentinels: it asks whichever server is the primary.

mod support;

use std::time::{Duration, Instant};

use mailrl_client::{Decision, Limits, MailRateLimiter, RateLimiterConfig};
use support::{NOTICED_WITHIN, PATIENT, mailbox, reserve};
use test_support::{Calls, PRIMARY, RedisServer, Sentinel};

const DOWN_AFTER_MS: u64 = 1_000;

/// What a busy machine may add to a promise.
const ROOM: Duration = Duration::from_secs(2);

fn server() -> RedisServer {
    RedisServer::builder()
        .arguments(["--repl-diskless-sync-delay", "0"])
        .module(["window", "rolling"])
        .start()
}

/// Asked anew each time: a server that is promoted drops its connections.
fn is_primary(server: &RedisServer) -> bool {
    let info = redis::Client::open(server.url())
        .and_then(|client| client.get_connection())
        .and_then(|mut connection| {
            redis::cmd("INFO")
                .arg("replication")
                .query::<String>(&mut connection)
        });
    info.is_ok_and(|info| info.contains("role:master"))
}

#[tokio::test]
async fn the_promoted_replica_is_found_with_what_was_counted() {
    let (mut primary, replica) = (server(), server());
    let port = primary.port();
    replica
        .connection()
        .ask::<()>(&format!("REPLICAOF 127.0.0.1 {port}"));
    primary.wait_for_replica(&replica);
    let sentinels = Sentinel::start(3, &primary, DOWN_AFTER_MS);
    let config = || {
        // The first address leads nowhere: a sentinel that is gone keeps nobody from the others.
        let urls = std::iter::once("redis://127.0.0.1:1".to_owned());
        let urls = urls.chain(sentinels.iter().map(Sentinel::url));
        RateLimiterConfig::sentinel(format!("redis://{PRIMARY}"), urls).concurrent(None)
    };
    let patient = MailRateLimiter::new(config().deadline(PATIENT)).unwrap();
    for _ in 0..10 {
        let decision = reserve(&patient).await;
        assert!(matches!(decision, Decision::Allowed(_)), "{decision:?}");
    }
    primary.wait_for_replica(&replica);
    primary.kill();
    let left = Instant::now();

    let limiter = MailRateLimiter::new(config()).unwrap();
    let (mut promoted, mut failed_open) = (None, 0);
    let back = loop {
        if promoted.is_none() && is_primary(&replica) {
            promoted = Some(left.elapsed());
        }
        match limiter.check_and_reserve(&mailbox(), 1, &Limits::default()).await {
            Decision::Allowed(_) => break left.elapsed(),
            Decision::FailOpen(_) => failed_open += 1,
            other => panic!("{other:?}"),
        }
        assert!(left.elapsed() < Duration::from_secs(30), "never back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let after = back.saturating_sub(promoted.unwrap_or(back));
    println!("promoted after {promoted:?}, back {after:?} later, {failed_open} failed open");
    assert!(after < NOTICED_WITHIN + ROOM, "back after {after:?}");
    assert!(replica.connection().used("mailrl:orders@example.com").0 >= 11);
}
