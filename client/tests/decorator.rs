//! The decorator: what each outcome of a send does to the mailbox, and to the caller.

mod support;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lettre::address::Envelope;
use lettre::{AsyncTransport, Message};
use mailrl_client::{
    DenialReason, Limits, MailOutcome, MailRateLimitExceeded, MailRateLimiter, RateLimitedError,
    RateLimitedGraphMailer, RateLimiterConfig, SendFailure, events,
};
use support::fake_redis::{FakeRedis, Reply, allowed, denied, line};
use support::mailbox_state::{MailboxState, server, state, used};
use support::scripted_mailer::{Act, ScriptedError, ScriptedMailer};
use support::{DEADLINE, KEY, MAILBOX, PATIENT, SLACK, eventually, patient_limiter};
use test_support::{CapturedLog, free_port};

type Mailer = RateLimitedGraphMailer<ScriptedMailer>;
type Sent = Result<&'static str, RateLimitedError<ScriptedError>>;

const RETRY_AFTER: Duration = Duration::from_secs(30);
const THROTTLED: MailOutcome = MailOutcome::Throttled {
    retry_after: RETRY_AFTER,
};

fn mailer(url: &str, act: Act) -> Mailer {
    RateLimitedGraphMailer::new(ScriptedMailer::that(act), patient_limiter(url))
}

/// From the mailbox of these tests to three recipients, one of them twice.
fn envelope() -> Envelope {
    let to = ["a@example.net", "b@example.net", "a@example.net"];
    Envelope::new(
        Some(MAILBOX.parse().unwrap()),
        to.map(|address| address.parse().unwrap()).to_vec(),
    )
    .unwrap()
}

async fn send(mailer: &Mailer) -> Sent {
    mailer.send_raw(&envelope(), b"Subject: test\r\n\r\n").await
}

/// Sends until the mail is in the mailer's hands, which keeps it there.
async fn send_until_it_hangs(mailer: &Mailer, sending: impl Future<Output = Sent>) {
    tokio::select! {
        sent = sending => panic!("it does not hang: {sent:?}"),
        () = eventually("the mailer has the mail", || mailer.inner().sends() == 1) => {}
    }
}

fn exceeded(reason: DenialReason, retry_after: Duration) -> RateLimitedError<ScriptedError> {
    MailRateLimitExceeded { reason, retry_after }.into()
}

#[tokio::test]
async fn a_mail_that_is_accepted_is_committed() {
    let server = server();
    let mailer = mailer(&server.url(), Act::Accept);
    assert_eq!(send(&mailer).await, Ok("202 Accepted"));
    mailer.limiter().flush().await;
    assert_eq!(state(&server), used(1, 3));
    assert_eq!(mailer.inner().sends(), 1);
}

#[tokio::test]
async fn a_mail_that_is_not_sent_is_released() {
    let server = server();
    let mailer = mailer(&server.url(), Act::Fail(MailOutcome::NotSent));
    let error = send(&mailer).await.unwrap_err();
    assert_eq!(error, RateLimitedError::Send(ScriptedError(MailOutcome::NotSent)));
    assert_eq!(error.to_string(), "scripted: NotSent");
    mailer.limiter().flush().await;
    assert_eq!(state(&server), used(0, 0));
}

#[tokio::test]
async fn a_mail_that_may_have_been_sent_is_committed_and_logged() {
    let log = CapturedLog::start();
    let server = server();
    let mailer = mailer(&server.url(), Act::Fail(MailOutcome::Unknown));
    let error = send(&mailer).await.unwrap_err();
    assert!(error.is_send() && error.may_have_been_sent());
    mailer.limiter().flush().await;
    assert_eq!(state(&server), used(1, 3));
    let entries = log.of(events::UNKNOWN_OUTCOME);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].1["mailbox"], MAILBOX);
}

#[tokio::test]
async fn a_throttled_mail_is_released_and_its_mailbox_paused() {
    let server = server();
    let mailer = mailer(&server.url(), Act::Fail(THROTTLED));
    let error = send(&mailer).await.unwrap_err();
    assert_eq!(error, exceeded(DenialReason::Upstream, RETRY_AFTER));
    // The caller's own next mail finds the pause without waiting for anything.
    let next = send(&mailer).await.unwrap_err();
    assert_eq!(next.exceeded().unwrap().reason, DenialReason::Paused);
    assert_eq!(mailer.inner().sends(), 1);
    mailer.limiter().flush().await;
    assert_eq!(
        state(&server),
        MailboxState {
            paused: true,
            ..used(0, 0)
        }
    );
}

#[tokio::test]
async fn the_pause_is_there_before_the_budget_is_free_again() {
    let server = FakeRedis::allowing("1-1", Reply::After(Duration::from_millis(20), ":1\r\n".into())).await;
    let mailer = mailer(&server.url(), Act::Fail(THROTTLED));
    assert!(send(&mailer).await.unwrap_err().is_exceeded());
    mailer.limiter().flush().await;
    assert_eq!(server.names(), ["RESERVE", "PAUSE", "RELEASE"]);
    assert_eq!(server.commands()[1], format!("MAILRL.PAUSE {KEY} 30000"));
}

#[tokio::test]
async fn a_send_dropped_before_its_handover_is_released() {
    let server = server();
    let mailer = mailer(&server.url(), Act::HangBeforeHandover);
    send_until_it_hangs(&mailer, send(&mailer)).await;
    mailer.limiter().flush().await;
    assert_eq!(state(&server), used(0, 0));
}

#[tokio::test]
async fn a_send_dropped_after_its_handover_is_committed_and_logged() {
    for act in [Act::HangAfterHandover, Act::HangInSilence] {
        let log = CapturedLog::start();
        let server = server();
        let mailer = mailer(&server.url(), act);
        send_until_it_hangs(&mailer, send(&mailer)).await;
        mailer.limiter().flush().await;
        assert_eq!(state(&server), used(1, 3), "{act:?}");
        assert_eq!(log.of(events::UNKNOWN_OUTCOME).len(), 1, "{act:?}");
    }
}

#[tokio::test]
async fn a_mailer_that_panics_does_not_keep_its_place() {
    let server = server();
    let mailer = mailer(&server.url(), Act::Panic);
    let limiter = mailer.limiter().clone();
    assert!(tokio::spawn(async move { send(&mailer).await }).await.is_err());
    limiter.flush().await;
    assert_eq!(state(&server), used(1, 3));
}

#[test]
fn a_send_dropped_outside_a_runtime_is_left_to_its_lease() {
    let server = server();
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let mailer = mailer(&server.url(), Act::HangBeforeHandover);
    let mut sending = Box::pin(send(&mailer));
    runtime().block_on(send_until_it_hangs(&mailer, &mut sending));
    drop(sending);
    assert_eq!(
        state(&server),
        MailboxState {
            open: 1,
            ..used(1, 3)
        }
    );
}

#[tokio::test]
async fn a_denied_mail_is_not_sent() {
    let server = server();
    let limits = Limits {
        per_minute: NonZeroU32::new(1),
        ..Limits::default()
    };
    let mailer = mailer(&server.url(), Act::Accept).with_limits(limits);
    send(&mailer).await.unwrap();
    let error = send(&mailer).await.unwrap_err();
    let exceeded = error.exceeded().unwrap();
    assert_eq!(exceeded.reason, DenialReason::Minute);
    assert!(exceeded.retry_after > Duration::from_secs(30), "{exceeded:?}");
    assert_eq!(error.mail_outcome(), MailOutcome::NotSent);
    assert_eq!(mailer.inner().sends(), 1);
}

#[tokio::test]
async fn a_mail_that_never_fits_is_not_sent() {
    let server = server();
    let limits = Limits {
        recipients_per_day: NonZeroU32::new(2),
        ..Limits::default()
    };
    let mailer = mailer(&server.url(), Act::Accept).with_limits(limits);
    assert!(send(&mailer).await.unwrap_err().is_too_large());
    assert_eq!(mailer.inner().sends(), 0);
}

#[tokio::test]
async fn a_mail_without_a_sender_is_an_error_and_reserves_nothing() {
    let server = FakeRedis::start(|_| Reply::Bytes(allowed("1-1"))).await;
    let mailer = mailer(&server.url(), Act::Accept);
    let envelope = Envelope::new(None, vec!["a@example.net".parse().unwrap()]).unwrap();
    let error = mailer.send_raw(&envelope, b"").await.unwrap_err();
    assert_eq!(error, RateLimitedError::NoSender);
    assert!(error.is_envelope());
    assert_eq!(mailer.inner().sends(), 0);
    assert!(server.connections().is_empty());
}

#[tokio::test]
async fn without_redis_mail_goes_out_and_nothing_is_settled() {
    for act in [
        Act::Accept,
        Act::Fail(MailOutcome::NotSent),
        Act::Fail(MailOutcome::Unknown),
    ] {
        let server = FakeRedis::start(|_| line("-OOM no room")).await;
        let mailer = mailer(&server.url(), act);
        assert_eq!(send(&mailer).await.is_ok(), matches!(act, Act::Accept));
        mailer.limiter().flush().await;
        assert_eq!(mailer.inner().sends(), 1);
        assert_eq!(server.names(), ["RESERVE"], "{act:?}");
    }
}

#[tokio::test]
async fn a_throttled_mail_that_went_out_uncounted_pauses_its_mailbox_and_releases_nothing() {
    let server = FakeRedis::start(|_| line("-OOM no room")).await;
    let mailer = mailer(&server.url(), Act::Fail(THROTTLED));
    let error = send(&mailer).await.unwrap_err();
    assert_eq!(error, exceeded(DenialReason::Upstream, RETRY_AFTER));
    mailer.limiter().flush().await;
    assert_eq!(server.names(), ["RESERVE", "PAUSE"]);
}

#[tokio::test]
async fn a_redis_that_is_gone_adds_no_more_than_the_deadline_to_a_send() {
    let mailer = mailer(&format!("redis://127.0.0.1:{}", free_port()), Act::Accept);
    for _ in 0..20 {
        let start = Instant::now();
        assert!(send(&mailer).await.is_ok());
        assert!(start.elapsed() < DEADLINE + SLACK);
    }
}

#[tokio::test]
async fn the_caller_does_not_wait_for_the_commit() {
    let server = FakeRedis::allowing("1-1", Reply::After(DEADLINE / 2, ":1\r\n".into())).await;
    let mailer = mailer(&server.url(), Act::Accept);
    send(&mailer).await.unwrap();
    let start = Instant::now();
    assert_eq!(server.names(), ["RESERVE"]);
    mailer.shutdown().await;
    assert!(start.elapsed() >= DEADLINE / 2, "the shutdown did not wait");
    assert_eq!(server.names(), ["RESERVE", "COMMIT"]);
}

#[tokio::test]
async fn a_commit_that_redis_missed_is_repeated() {
    let commits = AtomicUsize::new(0);
    let server = FakeRedis::start(move |command| {
        if command.starts_with("MAILRL.RESERVE") {
            Reply::Bytes(allowed("1-1"))
        } else if commits.fetch_add(1, Ordering::SeqCst) == 0 {
            Reply::BytesThenClose(String::new())
        } else {
            line(":1")
        }
    })
    .await;
    let mailer = mailer(&server.url(), Act::Accept);
    send(&mailer).await.unwrap();
    mailer.limiter().flush().await;
    assert_eq!(server.names(), ["RESERVE", "COMMIT", "COMMIT"]);
}

#[tokio::test]
async fn a_mail_waits_for_its_place_among_the_concurrent_sends() {
    let server = server();
    let config = RateLimiterConfig::new(server.url())
        .concurrent(Some(1))
        .deadline(PATIENT);
    let limiter = MailRateLimiter::new(config).unwrap();
    let inner = ScriptedMailer::that(Act::AcceptAfter(Duration::from_millis(100)));
    let mailer = Arc::new(RateLimitedGraphMailer::new(inner, limiter));
    let sends = (0..3).map(|_| {
        let mailer = Arc::clone(&mailer);
        tokio::spawn(async move { send(&mailer).await })
    });
    for sent in sends.collect::<Vec<_>>() {
        assert_eq!(sent.await.unwrap(), Ok("202 Accepted"));
    }
    mailer.limiter().flush().await;
    assert_eq!(state(&server), used(3, 9));
}

#[tokio::test]
async fn a_mail_that_gets_no_place_in_time_is_given_back_and_logged_once() {
    let log = CapturedLog::start();
    let server = FakeRedis::start(|_| Reply::Bytes(denied("concurrent", 250))).await;
    let wait = Duration::from_millis(700);
    let mailer = mailer(&server.url(), Act::Accept).with_concurrency_wait(wait);
    let start = Instant::now();
    let error = send(&mailer).await.unwrap_err();
    assert_eq!(
        error,
        exceeded(DenialReason::Concurrent, Duration::from_millis(250))
    );
    let took = start.elapsed();
    assert!(took >= wait && took < wait + SLACK, "took {took:?}");
    assert!((3..=6).contains(&server.commands().len()), "{:?}", server.names());
    assert_eq!(log.of(events::DENIED).len(), 1);
}

#[tokio::test]
async fn a_mail_that_may_not_wait_here_is_given_back_at_once() {
    let server = FakeRedis::start(|_| Reply::Bytes(denied("concurrent", 250))).await;
    let mailer = mailer(&server.url(), Act::Accept).with_concurrency_wait(Duration::ZERO);
    assert!(send(&mailer).await.unwrap_err().is_exceeded());
    assert_eq!(server.names(), ["RESERVE"]);
}

#[tokio::test]
async fn bulk_mail_says_so() {
    let server = FakeRedis::start(|_| Reply::Bytes(allowed("1-1"))).await;
    let mailer = mailer(&server.url(), Act::Accept).with_lane(mailrl_client::Lane::Bulk);
    send(&mailer).await.unwrap();
    assert_eq!(
        server.commands()[0],
        format!("MAILRL.RESERVE {KEY} 3 CONCURRENT 3 LEASE 120000 BULK")
    );
}

#[tokio::test]
async fn decorators_nest_and_stand_behind_the_interface_of_a_mailer() {
    let server = server();
    let inner = mailer(&server.url(), Act::Accept);
    let outer: Arc<
        dyn AsyncTransport<Ok = &'static str, Error = RateLimitedError<RateLimitedError<ScriptedError>>>
            + Send
            + Sync,
    > = Arc::new(RateLimitedGraphMailer::new(inner, patient_limiter(&server.url())));
    let message = Message::builder()
        .from(format!("Orders <{}>", MAILBOX.to_uppercase()).parse().unwrap())
        .to("a@example.net".parse().unwrap())
        .bcc("b@example.net".parse().unwrap())
        .body(String::from("hello"))
        .unwrap();
    assert_eq!(outer.send(message).await.unwrap(), "202 Accepted");
    outer.shutdown().await;
    assert_eq!(state(&server), used(2, 4));
}

#[test]
fn only_the_refusal_of_the_provider_pauses_the_outer_mailbox_too() {
    let upstream = exceeded(DenialReason::Upstream, RETRY_AFTER);
    assert_eq!(upstream.mail_outcome(), THROTTLED);
    for reason in [
        DenialReason::Minute,
        DenialReason::Day,
        DenialReason::Concurrent,
        DenialReason::Paused,
    ] {
        assert_eq!(exceeded(reason, RETRY_AFTER).mail_outcome(), MailOutcome::NotSent);
    }
    let unknown = RateLimitedError::Send(ScriptedError(MailOutcome::Unknown));
    assert_eq!(unknown.mail_outcome(), MailOutcome::Unknown);
}
