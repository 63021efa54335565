//! What is written down before a mail is handed over.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{envelope, mail, sim};
use graph_sim::Fault;
use lettre::AsyncTransport;
use mailrl_client::{MailOutcome, MailRateLimiter, RateLimitedGraphMailer, RateLimiterConfig, SendFailure};
use mailrl_mailer::write_ahead::{BeforeSend, NotRecorded, WriteAhead, WriteAheadError, scope};
use test_support::{Calls, RedisServer};

/// Counts how often it is asked, and answers always the same.
fn before_send(answer: Result<(), NotRecorded>) -> (BeforeSend, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let before_send: BeforeSend = Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let answer = answer.clone();
        Box::pin(async move { answer })
    });
    (before_send, asked)
}

#[tokio::test]
async fn a_mail_goes_out_once_its_record_is_written_or_if_nobody_keeps_one() {
    let sim = sim().start().await;
    let mailer = WriteAhead::new(common::mailer(&sim));
    mailer
        .send_raw(&envelope(&["a@example.net"]), &mail("1"))
        .await
        .unwrap();
    let (before_send, asked) = before_send(Ok(()));
    scope(
        before_send,
        mailer.send_raw(&envelope(&["a@example.net"]), &mail("2")),
    )
    .await
    .unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(sim.messages().len(), 2);
}

#[tokio::test]
async fn a_mail_whose_record_cannot_be_written_stays_and_gives_its_budget_back() {
    let sim = sim().start().await;
    let redis = RedisServer::with_module([]);
    let limiter = MailRateLimiter::new(RateLimiterConfig::new(redis.url())).unwrap();
    let mailer = RateLimitedGraphMailer::new(WriteAhead::new(common::mailer(&sim)), limiter.clone());
    let (before_send, asked) = before_send(Err(NotRecorded("Redis is away".into())));
    let error = scope(
        before_send,
        mailer.send_raw(&envelope(&["a@example.net"]), &mail("1")),
    )
    .await
    .unwrap_err();
    assert_eq!(error.mail_outcome(), MailOutcome::NotSent);
    assert!(!error.is_permanent(), "another time it may be written");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(sim.messages().is_empty());
    limiter.flush().await;
    let status = redis.connection().status("mailrl:news@example.com");
    assert_eq!((status.minute.used, status.day.used), (0, 0));
}

#[tokio::test]
async fn a_mail_that_is_denied_is_not_announced() {
    let sim = sim().start().await;
    let redis = RedisServer::with_module([]);
    let limiter = MailRateLimiter::new(RateLimiterConfig::new(redis.url())).unwrap();
    let mailbox = mailrl_client::Mailbox::new(common::MAILBOX);
    limiter
        .pause(&mailbox, std::time::Duration::from_mins(1))
        .await
        .unwrap();
    let mailer = RateLimitedGraphMailer::new(WriteAhead::new(common::mailer(&sim)), limiter);
    let (before_send, asked) = before_send(Ok(()));
    let error = scope(
        before_send,
        mailer.send_raw(&envelope(&["a@example.net"]), &mail("1")),
    )
    .await
    .unwrap_err();
    assert!(error.is_exceeded(), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn what_the_mailer_inside_says_of_the_mail_holds() {
    let sim = sim().start().await;
    let mailer = WriteAhead::new(common::mailer(&sim));
    for (status, outcome, is_permanent) in [
        (504, MailOutcome::Unknown, false),
        (400, MailOutcome::NotSent, true),
        (503, MailOutcome::NotSent, false),
    ] {
        sim.inject(Fault::answer(status));
        let error = mailer
            .send_raw(&envelope(&["a@example.net"]), &mail("1"))
            .await
            .unwrap_err();
        assert!(matches!(error, WriteAheadError::Send(_)));
        assert_eq!(
            (error.mail_outcome(), error.is_permanent()),
            (outcome, is_permanent),
            "{status}"
        );
    }
}
