//! What the tests of this crate share: a Redis that answers by script, a captured log, a clock.

// Each test file uses its own part of it.
#![allow(dead_code, missing_docs)]

pub mod fake_redis;
pub mod faulty_network;
pub mod mailbox_state;
pub mod other_program;
pub mod scripted_mailer;

use std::time::{Duration, Instant};

use mailrl_client::{
    Decision, FailOpen, FailOpenCause, Limits, MailRateLimiter, Mailbox, RateLimiterConfig, Reservation,
};

/// The deadline of [`limiter`], that of the defaults.
pub const DEADLINE: Duration = Duration::from_millis(100);

/// A deadline for tests in which Redis answers: a busy machine must not make them fail open.
pub const PATIENT: Duration = Duration::from_secs(5);

/// What a busy machine may add to a deadline.
pub const SLACK: Duration = Duration::from_millis(600);

/// After so long a test no longer waits for what should have come at once.
const LONG: Duration = Duration::from_secs(20);

/// How soon Redis's return has to be noticed.
pub const NOTICED_WITHIN: Duration = Duration::from_secs(2);

pub const MAILBOX: &str = "orders@example.com";
pub const KEY: &str = "mailrl:orders@example.com";

pub fn limiter(url: &str) -> MailRateLimiter {
    MailRateLimiter::new(RateLimiterConfig::new(url)).expect("a valid configuration")
}

/// A limiter for tests in which Redis answers.
pub fn patient_limiter(url: &str) -> MailRateLimiter {
    let config = RateLimiterConfig::new(url).deadline(PATIENT);
    MailRateLimiter::new(config).expect("a valid configuration")
}

pub fn mailbox() -> Mailbox {
    Mailbox::new(MAILBOX)
}

pub async fn reserve(limiter: &MailRateLimiter) -> Decision {
    limiter.check_and_reserve(&mailbox(), 1, &Limits::default()).await
}

pub async fn allowed(limiter: &MailRateLimiter) -> Reservation {
    match reserve(limiter).await {
        Decision::Allowed(reservation) => reservation,
        other => panic!("not allowed: {other:?}"),
    }
}

pub fn is_allowed(decision: &Decision) -> bool {
    matches!(decision, Decision::Allowed(_))
}

/// A server without the module answers, and that is its answer.
pub fn is_answered_without_module(decision: &Decision) -> bool {
    matches!(decision, Decision::FailOpen(failure) if failure.cause == FailOpenCause::ModuleMissing)
}

/// Reserves, which has to fail open within the deadline.
pub async fn fail_open(limiter: &MailRateLimiter) -> FailOpen {
    let start = Instant::now();
    let decision = reserve(limiter).await;
    let took = start.elapsed();
    assert!(took < DEADLINE + SLACK, "took {took:?}");
    match decision {
        Decision::FailOpen(failure) => failure,
        other => panic!("did not fail open: {other:?}"),
    }
}

/// Reserves every 20 ms until the decision is as wanted, which has to be as soon as Redis's return is
/// to be noticed.
pub async fn until(limiter: &MailRateLimiter, is_wanted: impl Fn(&Decision) -> bool) {
    until_within(NOTICED_WITHIN, limiter, is_wanted).await;
}

/// As [`until`], where nothing returns and it does not matter how long a busy machine takes.
pub async fn sooner_or_later(limiter: &MailRateLimiter, is_wanted: impl Fn(&Decision) -> bool) {
    until_within(LONG, limiter, is_wanted).await;
}

async fn until_within(limit: Duration, limiter: &MailRateLimiter, is_wanted: impl Fn(&Decision) -> bool) {
    let start = Instant::now();
    loop {
        let decision = reserve(limiter).await;
        if is_wanted(&decision) {
            return;
        }
        assert!(
            start.elapsed() < limit,
            "after {:?} still {decision:?}",
            start.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until something holds; panics when it does not come to hold at all.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The most connections that were made within any one second.
pub fn most_in_a_second(connections: &[Instant]) -> usize {
    let within = |start: Instant| {
        connections
            .iter()
            .filter(|at| **at >= start && at.duration_since(start) < Duration::from_millis(990))
            .count()
    };
    connections.iter().map(|start| within(*start)).max().unwrap_or(0)
}
