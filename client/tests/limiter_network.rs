//! Whatever the network between client and Redis does: the deadline holds, mail goes out, Redis is
//! found again, nobody is stormed, and a reply that was lost is no second mail.

mod support;

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use mailrl_client::{Decision, FailOpenCause, Limits, MailRateLimiter, RateLimiterConfig, events};
use support::faulty_network::{Fault, FaultyNetwork};
use support::mailbox_state::{MailboxState, server, state, used};
use support::{
    DEADLINE, NOTICED_WITHIN, PATIENT, allowed, eventually, fail_open, is_allowed, limiter, mailbox,
    most_in_a_second, patient_limiter, reserve, until,
};
use test_support::CapturedLog;

/// How many ask at the same time.
const CALLERS: usize = 50;

/// How long a fault lasts: long enough for the breaker and for several dials.
const OUTAGE: Duration = Duration::from_millis(4_300);

/// What a call may take here, and Redis's return: both are promised to be far shorter
/// (`cargo bench -p mailrl-client --bench fail_open` has the figures), but the machine may be busy.
const ROOM: Duration = Duration::from_secs(2);

/// What the callers saw.
#[derive(Default)]
struct Seen {
    longest: Duration,
    allowed: u64,
    causes: Vec<FailOpenCause>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.longest = self.longest.max(other.longest);
        self.allowed += other.allowed;
        self.causes.extend(other.causes);
    }

    /// How many questions were let through to Redis.
    fn asked(&self) -> u64 {
        let failed = self
            .causes
            .iter()
            .filter(|cause| **cause != FailOpenCause::CircuitOpen);
        self.allowed + u64::try_from(failed.count()).unwrap()
    }

    fn saw(&self, cause: FailOpenCause) -> bool {
        self.causes.contains(&cause)
    }
}

/// A mailbox that nothing but the network keeps from sending.
fn unlimited() -> Limits {
    let plenty = NonZeroU32::new(1_000_000);
    Limits {
        per_minute: plenty,
        recipients_per_day: plenty,
    }
}

async fn call(limiter: &MailRateLimiter, seen: &mut Seen) {
    let start = Instant::now();
    let decision = limiter.check_and_reserve(&mailbox(), 1, &unlimited()).await;
    seen.longest = seen.longest.max(start.elapsed());
    match decision {
        Decision::Allowed(_) => seen.allowed += 1,
        Decision::FailOpen(failure) => seen.causes.push(failure.cause),
        other => panic!("neither allowed nor failed open: {other:?}"),
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn many_call(limiter: &MailRateLimiter) -> Seen {
    let end = Instant::now() + OUTAGE;
    let callers = (0..CALLERS).map(|_| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let mut seen = Seen::default();
            while Instant::now() < end {
                call(&limiter, &mut seen).await;
            }
            seen
        })
    });
    let mut all = Seen::default();
    for caller in callers.collect::<Vec<_>>() {
        all.add(caller.await.unwrap());
    }
    all
}

/// Calls until Redis has answered.
async fn call_until_allowed(limiter: &MailRateLimiter, seen: &mut Seen) -> Duration {
    let start = Instant::now();
    let allowed = seen.allowed;
    while seen.allowed == allowed {
        call(limiter, seen).await;
    }
    start.elapsed()
}

/// Has many callers go through the fault and out of it again, and holds the client to all it promises.
async fn hold_through(fault: Fault) -> Seen {
    let log = CapturedLog::start();
    let server = server();
    let network = FaultyNetwork::before(server.port()).await;
    let limiter = MailRateLimiter::new(RateLimiterConfig::new(network.url()).concurrent(None)).unwrap();
    let mut seen = Seen::default();
    call_until_allowed(&limiter, &mut seen).await;

    network.set(fault);
    let start = Instant::now();
    seen.add(many_call(&limiter).await);
    network.set(Fault::None);
    let back_after = call_until_allowed(&limiter, &mut seen).await;
    let lasted = start.elapsed();
    // Late answers may still be on their way.
    tokio::time::sleep(3 * DEADLINE).await;

    let connections = network.connections();
    let at_once = most_in_a_second(&connections);
    let warnings = log.of(events::REDIS_ERROR).len();
    let counted = u64::try_from(state(&server).messages).unwrap();
    println!(
        "{fault:?}: longest call {:?}, back after {back_after:?}, {} connections, {at_once} within a \
         second, {warnings} warnings in {lasted:?}, {} asked, {} allowed, {counted} counted",
        seen.longest,
        connections.len(),
        seen.asked(),
        seen.allowed,
    );
    assert!(seen.longest < DEADLINE + ROOM, "a call took {:?}", seen.longest);
    assert!(back_after < NOTICED_WITHIN + ROOM, "back after {back_after:?}");
    assert!(at_once <= 2, "{at_once} connections within a second");
    let at_most = usize::try_from(lasted.as_secs()).unwrap() + 2;
    assert!((1..=at_most).contains(&warnings), "{warnings} in {lasted:?}");
    assert!(!log.of(events::RECOVERED).is_empty());
    assert!(
        (seen.allowed..=seen.asked()).contains(&counted),
        "{counted} counted, {} allowed, {} asked",
        seen.allowed,
        seen.asked()
    );
    seen
}

#[tokio::test]
async fn a_network_slower_than_the_deadline_is_held_through() {
    let seen = hold_through(Fault::Delay(DEADLINE)).await;
    assert!(seen.saw(FailOpenCause::Timeout));
}

#[tokio::test]
async fn a_black_hole_is_held_through() {
    let seen = hold_through(Fault::BlackHole).await;
    assert!(seen.saw(FailOpenCause::Timeout));
    assert!(seen.saw(FailOpenCause::CircuitOpen));
}

#[tokio::test]
async fn connections_that_are_cut_in_the_middle_of_a_reply_are_held_through() {
    let seen = hold_through(Fault::CutReplies { after: 20 }).await;
    assert!(seen.saw(FailOpenCause::Unreachable));
}

#[tokio::test]
async fn half_closed_connections_are_held_through() {
    let seen = hold_through(Fault::HalfClose).await;
    assert!(seen.saw(FailOpenCause::Unreachable));
}

#[tokio::test]
async fn a_frozen_network_is_held_through() {
    let seen = hold_through(Fault::Freeze).await;
    assert!(seen.saw(FailOpenCause::Timeout));
    assert!(seen.saw(FailOpenCause::CircuitOpen));
}

#[tokio::test]
async fn a_network_a_little_faster_than_the_deadline_costs_no_decision() {
    let server = server();
    let network = FaultyNetwork::before(server.port()).await;
    let limiter = patient_limiter(&network.url());
    network.set(Fault::Delay(DEADLINE));
    assert!(is_allowed(&reserve(&limiter).await));
}

#[tokio::test]
async fn a_mail_whose_reply_is_cut_off_is_counted_once() {
    for after in [0, 1, 20] {
        let server = server();
        let network = FaultyNetwork::before(server.port()).await;
        let limiter = patient_limiter(&network.url());
        let first = allowed(&limiter).await;
        assert_eq!(limiter.release(&first).await, Ok(true));
        // Long enough ago for another connection to be dialled at once.
        tokio::time::sleep(NOTICED_WITHIN / 2).await;
        network.set(Fault::CutOneReply { after });
        assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Unreachable);
        tokio::time::sleep(NOTICED_WITHIN / 2).await;
        // As far as the client knows it went out uncounted. The reservation is its count, and its
        // lease ends it.
        assert_eq!(
            state(&server),
            MailboxState {
                open: 1,
                ..used(1, 1)
            }
        );
    }
}

#[tokio::test]
async fn mails_that_share_a_cut_connection_are_each_counted_once_at_most() {
    let server = server();
    let network = FaultyNetwork::before(server.port()).await;
    let config = RateLimiterConfig::new(network.url())
        .deadline(PATIENT)
        .concurrent(None);
    let limiter = MailRateLimiter::new(config).unwrap();
    for round in 1..=3 {
        call_until_allowed(&limiter, &mut Seen::default()).await;
        // Long enough for another connection to be dialled at once.
        tokio::time::sleep(NOTICED_WITHIN / 2).await;
        let before = u64::try_from(state(&server).messages).unwrap();
        network.set(Fault::CutOneReply { after: 20 });
        let calls = (0..CALLERS).map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { call(&limiter, &mut Seen::default()).await })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        let counted = u64::try_from(state(&server).messages).unwrap() - before;
        let asked = u64::try_from(CALLERS).unwrap();
        assert!(
            counted <= asked,
            "round {round}: {counted} counted of {asked} mails"
        );
    }
}

#[tokio::test]
async fn a_mail_whose_reply_comes_after_the_fail_open_is_counted_once() {
    let server = server();
    let network = FaultyNetwork::before(server.port()).await;
    let limiter = limiter(&network.url());
    until(&limiter, is_allowed).await;
    let before = state(&server);
    network.set(Fault::Freeze);
    assert_eq!(fail_open(&limiter).await.cause, FailOpenCause::Timeout);
    network.set(Fault::None);
    let counted = MailboxState {
        messages: before.messages + 1,
        recipients: before.recipients + 1,
        ..before
    };
    eventually("the late reservation is committed", || state(&server) == counted).await;
}

#[tokio::test]
async fn a_release_whose_reply_is_cut_off_takes_back_its_own_mail_only() {
    let server = server();
    let network = FaultyNetwork::before(server.port()).await;
    let limiter = patient_limiter(&network.url());
    let (kept, released) = (allowed(&limiter).await, allowed(&limiter).await);
    network.set(Fault::CutOneReply { after: 2 });
    assert_eq!(limiter.release(&released).await, Err(FailOpenCause::Unreachable));
    assert_eq!(
        state(&server),
        MailboxState {
            open: 1,
            ..used(1, 1)
        }
    );
    tokio::time::sleep(NOTICED_WITHIN / 2).await;
    // Told again, Redis knows that it was taken back already.
    assert_eq!(limiter.release(&released).await, Ok(false));
    assert_eq!(limiter.commit(&kept).await, Ok(true));
    assert_eq!(state(&server), used(1, 1));
}

#[tokio::test]
async fn a_caller_who_leaves_a_frozen_network_leaves_no_mail_behind() {
    let server = server();
    let network = FaultyNetwork::before(server.port()).await;
    let limiter = patient_limiter(&network.url());
    let kept = allowed(&limiter).await;
    network.set(Fault::Freeze);
    let left = tokio::time::timeout(DEADLINE, reserve(&limiter)).await;
    assert!(left.is_err(), "{left:?}");
    network.set(Fault::None);
    assert_eq!(limiter.commit(&kept).await, Ok(true));
    eventually("only the mail that went out is counted", || {
        state(&server) == used(1, 1)
    })
    .await;
}
