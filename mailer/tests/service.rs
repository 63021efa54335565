//! What becomes of a message, by what its mailer answers.

mod common;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use common::MAILBOX;
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::{
    DenialReason, Limits, MailOutcome, MailRateLimitExceeded, MailRateLimiter, RateLimitedGraphMailer,
    RateLimiterConfig, SendFailure,
};
use mailrl_mailer::factory::{FactoryError, Mailers};
use mailrl_mailer::service::{Deferral, DeferralReason, Delivery, DeliveryError, Policy, events, spread};
use mailrl_mailer::{AnyMailer, MailMessage, MailProviderService, Mailer, MailerError, Sender};
use test_support::{CapturedLog, RedisServer};

const MAX_SPREAD: Duration = Duration::from_secs(30);

/// A mailer that always answers the same.
struct Answers {
    answer: Result<(), MailerError>,
    sends: AtomicUsize,
}

#[async_trait]
impl AsyncTransport for Answers {
    type Ok = ();
    type Error = MailerError;

    async fn send_raw(&self, _: &Envelope, _: &[u8]) -> Result<(), MailerError> {
        self.sends.fetch_add(1, Ordering::Relaxed);
        self.answer.clone()
    }
}

/// The same mailer, or the lack of one, for everybody.
struct Always(Result<Mailer, FactoryError>);

impl Mailers for Always {
    fn mailer_for(&self, _: &Sender, _: &Envelope) -> Result<Mailer, FactoryError> {
        self.0.clone()
    }
}

fn answering(answer: Result<(), MailerError>) -> (MailProviderService<Always>, Arc<Answers>) {
    let mailer = Arc::new(Answers {
        answer,
        sends: AtomicUsize::new(0),
    });
    let service = MailProviderService::new(Always(Ok(mailer.clone())), Policy::default());
    (service, mailer)
}

fn denied(reason: DenialReason, retry_after: Duration) -> Result<(), MailerError> {
    Err(MailRateLimitExceeded { reason, retry_after }.into())
}

fn message(id: &str) -> MailMessage {
    MailMessage {
        id: id.parse().unwrap(),
        sender: Sender::SystemMailbox,
        envelope: common::envelope(&["a@example.net"]),
        mime: common::mail("Hello").into(),
        created_at: SystemTime::now(),
        failures: 0,
    }
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3600)
}

async fn scheduled(service: &MailProviderService<Always>, message: &MailMessage) -> Deferral {
    match service.send(message).await {
        Ok(Delivery::Scheduled(deferral)) => deferral,
        other => panic!("{other:?}"),
    }
}

async fn failed(service: &MailProviderService<Always>, message: &MailMessage) -> String {
    match service.send(message).await {
        Err(DeliveryError::Failed(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_denied_message_is_scheduled_and_the_log_says_until_when_and_why() {
    let log = CapturedLog::start();
    let (service, _) = answering(denied(DenialReason::Minute, Duration::from_millis(17_500)));
    let before = SystemTime::now();
    let deferral = scheduled(&service, &message("foobar")).await;
    assert_eq!(deferral.reason, DeferralReason::Denied(DenialReason::Minute));
    assert_eq!(deferral.spread, spread(&"foobar".parse().unwrap()));
    assert!(deferral.scheduled_on >= before + deferral.retry_after + deferral.spread);

    let entries = log.of(events::DEFERRED);
    let [(level, fields)] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!(level, "INFO");
    assert_eq!(fields["message_id"], "foobar");
    assert_eq!(fields["mailbox"], MAILBOX);
    assert_eq!(fields["reason"], "minute");
    assert_eq!(fields["retry_after_ms"], 17_500);
    assert_eq!(
        fields["spread_ms"],
        u64::try_from(deferral.spread.as_millis()).unwrap()
    );
    let scheduled_on = deferral
        .scheduled_on
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    assert_eq!(
        fields["scheduled_on"],
        u64::try_from(scheduled_on.as_millis()).unwrap()
    );
}

#[tokio::test]
async fn each_answer_of_a_mailer_has_its_own_end() {
    let log = CapturedLog::start();
    let (service, _) = answering(Ok(()));
    assert_eq!(service.send(&message("sent")).await, Ok(Delivery::Sent));
    let (service, _) = answering(Err(MailerError::NotSent("503".into())));
    let deferral = scheduled(&service, &message("retried")).await;
    assert_eq!(deferral.reason, DeferralReason::Failure("503".into()));
    let (service, _) = answering(Err(MailerError::Refused("400".into())));
    assert_eq!(failed(&service, &message("refused")).await, "400");
    let (service, _) = answering(Err(MailerError::Unknown("504".into())));
    let unknown = service.send(&message("unknown")).await;
    assert_eq!(unknown, Err(DeliveryError::Unknown("504".into())));
    for (event, level, id) in [
        (events::SENT, "INFO", "sent"),
        (events::RETRIED, "WARN", "retried"),
        (events::FAILED, "ERROR", "refused"),
        (events::UNKNOWN, "ERROR", "unknown"),
    ] {
        let entries = log.of(event);
        assert_eq!(entries.len(), 1, "{event}");
        assert_eq!(
            (&*entries[0].0, &entries[0].1["message_id"]),
            (level, &id.into()),
            "{event}"
        );
    }
}

#[tokio::test]
async fn what_was_certainly_not_sent_is_tried_five_times_more_with_growing_pauses() {
    let (service, mailer) = answering(Err(MailerError::NotSent("no connection".into())));
    let mut message = message("foobar");
    let mut pauses = Vec::new();
    for failures in 0..5 {
        message.failures = failures;
        pauses.push(scheduled(&service, &message).await.retry_after.as_secs());
    }
    assert_eq!(pauses, [30, 120, 480, 1920, 7680]);
    message.failures = 5;
    let reason = failed(&service, &message).await;
    assert_eq!(reason, "no connection; that was try 6, the last one");
    assert_eq!(mailer.sends.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn what_could_not_even_be_tried_waits_for_the_first_pause_however_often_others_failed() {
    let (service, _) = answering(Err(MailerError::NotTried("no record".into())));
    let mut message = message("foobar");
    message.failures = 5;
    let deferral = scheduled(&service, &message).await;
    assert_eq!(deferral.reason, DeferralReason::Unavailable("no record".into()));
    assert_eq!(deferral.retry_after, Policy::default().first_pause);
}

#[tokio::test]
async fn being_denied_is_no_try_however_often_others_failed() {
    let (service, _) = answering(denied(DenialReason::Day, hours(1)));
    let mut message = message("foobar");
    message.failures = 5;
    scheduled(&service, &message).await;
}

#[tokio::test]
async fn a_message_past_its_age_limit_is_not_sent() {
    let (service, mailer) = answering(Ok(()));
    let mut message = message("foobar");
    message.created_at = SystemTime::now() - hours(48);
    let reason = failed(&service, &message).await;
    assert_eq!(
        reason,
        "it waited too long: it is 48.0 h old, and the age limit is 48 h"
    );
    assert_eq!(mailer.sends.load(Ordering::Relaxed), 0);
    message.created_at += Duration::from_mins(1);
    assert_eq!(service.send(&message).await, Ok(Delivery::Sent));
}

#[tokio::test]
async fn a_message_whose_turn_comes_past_its_age_limit_fails_at_once() {
    let (service, _) = answering(denied(DenialReason::Day, hours(10)));
    let mut message = message("foobar");
    message.created_at = SystemTime::now() - hours(39);
    let reason = failed(&service, &message).await;
    assert!(
        reason.starts_with("its turn would come too late (day)"),
        "{reason}"
    );
    message.created_at = SystemTime::now() - hours(37);
    scheduled(&service, &message).await;
}

#[tokio::test]
async fn a_message_of_nobody_fails_and_one_whose_mailer_cannot_be_had_now_waits_for_it() {
    let service = |error| MailProviderService::new(Always(Err(error)), Policy::default());
    let unknown = service(FactoryError::Unknown("no tenant \"x\"".into()));
    assert_eq!(failed(&unknown, &message("foobar")).await, "no tenant \"x\"");
    let unusable = service(FactoryError::Unusable("no secret".into()));
    // That is no try: a secret may be missing for longer than all tries take.
    let deferral = scheduled(&unusable, &message("foobar")).await;
    assert_eq!(deferral.reason, DeferralReason::Unavailable("no secret".into()));
}

/// A mailer that is never reached.
#[derive(Clone)]
struct Unreached;

#[derive(Debug, thiserror::Error)]
#[error("never happens")]
struct Never;

impl SendFailure for Never {
    fn mail_outcome(&self) -> MailOutcome {
        MailOutcome::Unknown
    }
}

#[async_trait]
impl AsyncTransport for Unreached {
    type Ok = ();
    type Error = Never;

    async fn send_raw(&self, _: &Envelope, _: &[u8]) -> Result<(), Never> {
        panic!("it was denied")
    }
}

#[tokio::test]
async fn two_hundred_that_are_denied_at_one_instant_come_back_spread_over_30_s() {
    let redis = RedisServer::with_module(["pacing", "no"]);
    // A machine that is busy with other tests is not what is tested here.
    let config = RateLimiterConfig::new(redis.url()).deadline(Duration::from_secs(5));
    let limiter = MailRateLimiter::new(config.concurrent(None)).unwrap();
    let pause = Duration::from_mins(10);
    let mailbox = mailrl_client::Mailbox::new(MAILBOX);
    let until = limiter.pause(&mailbox, pause).await.unwrap();
    let mailer = RateLimitedGraphMailer::new(Unreached, limiter).with_limits(Limits {
        per_minute: NonZeroU32::new(25),
        recipients_per_day: None,
    });
    let mailer: Mailer = Arc::new(AnyMailer(mailer));
    let service = MailProviderService::new(Always(Ok(mailer)), Policy::default());

    let messages: Vec<_> = (0..200).map(|n| message(&format!("campaign-{n}"))).collect();
    let first = futures_util::future::join_all(messages.iter().map(|it| scheduled(&service, it))).await;
    let again = futures_util::future::join_all(messages.iter().map(|it| scheduled(&service, it))).await;
    let mut seconds = BTreeSet::new();
    for (one, other) in first.iter().zip(&again) {
        assert_eq!(one.reason, DeferralReason::Denied(DenialReason::Paused));
        assert_eq!(one.spread, other.spread, "the same id has the same spread");
        assert!(one.spread <= MAX_SPREAD);
        // Not before what the module said, which is the end of the pause.
        assert!(one.scheduled_on >= until + one.spread - Duration::from_millis(1));
        assert!(one.scheduled_on <= until + one.spread + Duration::from_secs(5));
        seconds.insert(one.spread.as_secs());
    }
    assert!(seconds.len() >= 29, "spread over {seconds:?}");
}
