//! One token per tenant, asked for once at a time.

mod common;

use std::time::{Duration, Instant};

use common::{Canned, Frozen, MAILBOX, SECRET, builder, eventually, mailer, nobody, send, sim};
use graph_sim::{Fault, GraphSim};
use mailrl_client::{MailOutcome, SendFailure};
use mailrl_mailer::{GraphAccepted, GraphError, MicrosoftGraphMailer, Secret};

async fn fifty_at_once(mailer: &MicrosoftGraphMailer) -> Vec<Result<GraphAccepted, GraphError>> {
    let sends: Vec<_> = (0..50)
        .map(|_| {
            let mailer = mailer.clone();
            tokio::spawn(async move { send(&mailer).await })
        })
        .collect();
    let mut results = Vec::new();
    for send in sends {
        results.push(send.await.unwrap());
    }
    results
}

#[track_caller]
fn assert_no_token(error: &GraphError, words: &str) {
    assert!(error.is_token(), "{error}");
    assert_eq!(error.mail_outcome(), MailOutcome::NotSent);
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn a_token_serves_all_mails_and_mailboxes_until_shortly_before_it_expires() {
    let sim = sim().token_lifetime(Duration::from_secs(2)).start().await;
    let mailer = mailer(&sim);
    let start = Instant::now();
    for _ in 0..20 {
        send(&mailer).await.unwrap();
    }
    assert_eq!(sim.report().token_requests, 1);
    // A tenth of its life before the end it is not used any more, though Graph would take it.
    tokio::time::sleep(Duration::from_millis(1_850).saturating_sub(start.elapsed())).await;
    send(&mailer).await.unwrap();
    assert_eq!(sim.report().token_requests, 2);
}

#[tokio::test]
async fn fifty_sends_at_once_ask_for_one_token() {
    let sim = sim().start().await;
    sim.inject(Fault::slow(100..=100).on_token());
    let results = fifty_at_once(&mailer(&sim)).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(sim.report().token_requests, 1);
    assert_eq!(sim.messages().len(), 50);
}

#[tokio::test]
async fn a_failure_is_shared_by_all_who_waited_and_by_nobody_later() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    sim.inject(Fault::answer(500).delayed(200..=200).on_token());
    let results = fifty_at_once(&mailer).await;
    for result in &results {
        assert_no_token(result.as_ref().unwrap_err(), "answered 500");
    }
    assert_eq!(sim.report().token_requests, 1);
    send(&mailer).await.unwrap();
    assert_eq!(sim.report().token_requests, 2);
}

#[tokio::test]
async fn when_the_one_that_asks_is_dropped_another_asks() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    sim.inject(Fault::hang().on_token());
    let asking = tokio::spawn({
        let mailer = mailer.clone();
        async move { send(&mailer).await }
    });
    eventually("the first asks", || sim.report().token_requests == 1).await;
    let waiting = tokio::spawn(async move { send(&mailer).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    asking.abort();
    waiting.await.unwrap().unwrap();
    assert_eq!(sim.report().token_requests, 2);
}

#[tokio::test]
async fn a_401_costs_the_token_and_the_next_mail_asks_for_another() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    send(&mailer).await.unwrap();
    sim.revoke_tokens();
    let error = send(&mailer).await.unwrap_err();
    assert_eq!(
        (error.status(), error.code()),
        (Some(401), Some("InvalidAuthenticationToken"))
    );
    assert_eq!(error.mail_outcome(), MailOutcome::NotSent);
    assert_eq!(
        sim.report().token_requests,
        1,
        "the mail is not sent again by itself"
    );
    send(&mailer).await.unwrap();
    assert_eq!(sim.report().token_requests, 2);
}

#[tokio::test]
async fn a_late_401_does_not_cost_a_newer_token() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    send(&mailer).await.unwrap();
    sim.inject(Fault::answer(401).delayed(600..=600));
    let late = tokio::spawn({
        let mailer = mailer.clone();
        async move { send(&mailer).await }
    });
    eventually("the late one is on its way", || {
        sim.report().mailbox(MAILBOX).faults == 1
    })
    .await;
    sim.revoke_tokens();
    assert!(send(&mailer).await.is_err());
    send(&mailer).await.unwrap();
    assert!(late.await.unwrap().is_err());
    send(&mailer).await.unwrap();
    assert_eq!(sim.report().token_requests, 2);
}

#[tokio::test]
async fn without_a_token_no_mail_is_posted() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    let faults = [
        (Fault::answer(500), "answered 500"),
        (Fault::answer(503).retry_after("5"), "answered 503"),
        (Fault::answer(429).retry_after("5"), "answered 429"),
        (
            Fault::answer(400)
                .code("invalid_grant")
                .message("AADSTS500011: gone"),
            "invalid_grant (AADSTS500011",
        ),
        (Fault::answer(200).body("<html>"), "no token"),
        (Fault::answer(200).body(r#"{"expires_in": 3599}"#), "no token"),
        (Fault::answer(200).body(r#"{"access_token": "x"}"#), "no token"),
        (
            Fault::answer(200).body(r#"{"access_token": "a\nb", "expires_in": 3599}"#),
            "no token",
        ),
        (Fault::answer(302), "answered 302"),
        (Fault::reset(), "connection"),
        (Fault::reset().after_accepting(), "connection"),
    ];
    for (fault, words) in faults {
        sim.inject(fault.on_token());
        assert_no_token(&send(&mailer).await.unwrap_err(), words);
    }
    assert_eq!(sim.report().mailboxes.len(), 0, "no request for a mail was made");
    send(&mailer).await.unwrap();
}

#[tokio::test]
async fn a_login_server_that_is_down_or_hangs_means_not_sent() {
    let sim = sim().start().await;
    let down = builder(&nobody(), &sim.base_url()).build().unwrap();
    assert_no_token(&send(&down).await.unwrap_err(), "Connection refused");

    let frozen = Frozen::new();
    let timeout = Duration::from_millis(300);
    let hanging = builder(&frozen.url("http"), &sim.base_url())
        .timeout(timeout)
        .build()
        .unwrap();
    let start = Instant::now();
    for result in fifty_at_once(&hanging).await {
        let error = result.unwrap_err();
        assert_no_token(&error, "in time");
        assert!(error.is_timeout());
    }
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "all wait for the same, not one after the other"
    );
    assert_eq!(sim.report().mailboxes.len(), 0);
}

#[tokio::test]
async fn a_token_of_any_lifetime_does() {
    let sim = GraphSim::builder().start().await;
    for lifetime in [0, 1, u64::MAX] {
        let login = Canned::json(&format!(r#"{{"access_token": "x", "expires_in": {lifetime}}}"#)).await;
        let mailer = builder(&login.url, &sim.base_url()).build().unwrap();
        // The simulator knows no such token: that it is asked shows that the mailer took it.
        assert_eq!(send(&mailer).await.unwrap_err().status(), Some(401), "{lifetime}");
    }
}

#[tokio::test]
async fn no_error_shows_the_secret_or_a_token() {
    let sim = sim().start().await;
    let mut errors = Vec::new();
    let wrong = MicrosoftGraphMailer::builder("tenant", "app", Secret::new("hunter3-a-guess"))
        .login_url(sim.base_url())
        .graph_url(sim.base_url())
        .no_proxy()
        .build()
        .unwrap();
    let error = send(&wrong).await.unwrap_err();
    assert_no_token(&error, "answered 401 invalid_client (AADSTS7000215");
    errors.push(error);

    let mailer = mailer(&sim);
    for fault in [
        Fault::reset().on_token(),
        Fault::reset(),
        Fault::answer(500),
        Fault::answer(401),
    ] {
        sim.inject(fault);
        errors.push(send(&mailer).await.unwrap_err());
    }
    let echo = format!(r#"{{"error": "invalid_client", "error_description": "{SECRET}: is wrong"}}"#);
    sim.inject(Fault::answer(401).body(&echo).on_token());
    errors.push(send(&mailer).await.unwrap_err());
    let frozen = Frozen::new();
    let timeout = Duration::from_millis(100);
    for (login, graph) in [
        (sim.base_url(), nobody()),
        (nobody(), nobody()),
        (frozen.url("http"), nobody()),
    ] {
        let mailer = builder(&login, &graph).timeout(timeout).build().unwrap();
        errors.push(send(&mailer).await.unwrap_err());
    }
    for error in errors {
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains("hunter") && !shown.contains("sim."), "{shown}");
    }
}
