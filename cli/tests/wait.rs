//! `mailrl send --wait`, and how it is ended.

mod common;

use std::time::{Duration, Instant};

use common::*;
use graph_sim::Fault;
use test_support::Calls;

#[tokio::test]
async fn a_mail_that_has_to_wait_is_sent_at_its_time() {
    let setup = Setup::new().await;
    for name in ["a.eml", "b.eml"] {
        setup.mail(name);
    }
    setup.redis.connection().pause(KEY, 1_500);
    let run = setup.send(["--wait", "a.eml", "b.eml"]).await;
    run.ends_with(0).says("2 mails: 2 sent");
    assert!(run.took >= Duration::from_millis(1_400), "{run:?}");
    let told = run
        .stderr
        .lines()
        .filter(|line| line.starts_with("a.eml: waits until "))
        .collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{run:?}");
    assert!(
        told[0].contains(" UTC (1.") && told[0].contains(" s): news@example.com is paused"),
        "{told:?}"
    );
    assert_eq!(setup.arrived(), ["a.eml", "b.eml"]);
}

#[tokio::test]
async fn a_mail_that_is_denied_again_waits_again() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    setup.redis.connection().pause(KEY, 1_000);
    let mut running = Running::start(setup.command("send").args(["--wait", "--json", "a.eml"]));
    running.until_it_says("a.eml: waits until").await;
    setup.redis.connection().pause(KEY, 2_500);
    let run = running.end().await;
    run.ends_with(0);
    assert!(run.took >= Duration::from_millis(2_400), "{run:?}");
    assert_eq!(run.json()[0]["waits"], 2);
    assert_eq!(run.json()[0]["result"], "sent");
}

#[tokio::test]
async fn a_mail_that_graph_throttles_waits_as_long_as_it_says() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    setup
        .graph
        .inject(Fault::answer(429).code("ApplicationThrottled").retry_after("1"));
    let run = setup.send(["--wait", "--json", "a.eml"]).await;
    run.ends_with(0)
        .says("Microsoft Graph asks news@example.com to wait");
    assert!(run.took >= Duration::from_secs(1), "{run:?}");
    assert!(run.json()[0]["waits"].as_u64().unwrap() >= 1);
    assert_eq!(setup.arrived(), ["a.eml"]);
    assert_eq!(setup.redis.connection().used(KEY), (1, 1));
}

#[tokio::test]
async fn without_waiting_a_throttled_mail_is_deferred_for_all() {
    let setup = Setup::new().await;
    for name in ["a.eml", "b.eml"] {
        setup.mail(name);
    }
    setup.graph.inject(Fault::answer(429).retry_after("30"));
    let run = setup.send(["--json", "a.eml", "b.eml"]).await;
    run.ends_with(3);
    let reasons: Vec<_> = run.json().iter().map(|object| object["reason"].clone()).collect();
    assert_eq!(reasons, ["upstream", "paused"]);
    assert!(setup.arrived().is_empty());
    assert_eq!(setup.redis.connection().used(KEY), (0, 0));
}

async fn waiting(setup: &Setup) -> Running {
    for name in ["a.eml", "b.eml", "c.eml"] {
        setup.mail(name);
    }
    setup.redis.connection().pause(KEY, 60_000);
    let arguments = ["--wait", "--json", "a.eml", "b.eml", "c.eml"];
    let mut running = Running::start(setup.command("send").args(arguments));
    running.until_it_says("a.eml: waits until").await;
    running
}

#[tokio::test]
async fn ctrl_c_while_it_waits_ends_it_at_once_and_says_what_was_not_sent() {
    let setup = Setup::new().await;
    let running = waiting(&setup).await;
    let start = Instant::now();
    running.signal(libc::SIGINT);
    let run = running.end().await;
    run.ends_with(130);
    assert!(start.elapsed() < Duration::from_secs(10), "{run:?}");
    let told: Vec<_> = run
        .json()
        .iter()
        .map(|object| {
            (
                object["file"].clone(),
                object["result"].clone(),
                object["reason"].clone(),
            )
        })
        .collect();
    let expected = [
        ("a.eml", "paused"),
        ("b.eml", "interrupted"),
        ("c.eml", "interrupted"),
    ];
    assert_eq!(
        told,
        expected.map(|(file, reason)| (file.into(), "deferred".into(), reason.into()))
    );
    assert!(run.stderr.contains("3 mails: 0 sent, 3 deferred"), "{run:?}");
    assert!(setup.arrived().is_empty());
}

#[tokio::test]
async fn sigterm_ends_it_too() {
    let setup = Setup::new().await;
    let running = waiting(&setup).await;
    running.signal(libc::SIGTERM);
    running.end().await.ends_with(143);
}

#[tokio::test]
async fn ctrl_c_lets_the_mail_under_way_come_to_its_end() {
    let setup = Setup::new().await;
    for name in ["a.eml", "b.eml"] {
        setup.mail(name);
    }
    setup.graph.set_latency(1_500..=1_500);
    let running = Running::start(setup.command("send").args(["a.eml", "b.eml"]));
    let mut redis = setup.redis.connection();
    eventually("a mail is under way", || redis.status(KEY).open == 1).await;
    running.signal(libc::SIGINT);
    let run = running.end().await;
    run.ends_with(130)
        .says("a.eml: sent from")
        .says("b.eml: not sent, interrupted before its turn");
    assert_eq!(setup.arrived(), ["a.eml"]);
    // It was committed before the end.
    assert_eq!((redis.status(KEY).open, redis.used(KEY)), (0, (1, 1)));
}

#[tokio::test]
async fn a_second_ctrl_c_stops_the_mail_under_way() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    setup.graph.inject(Fault::hang().after_accepting());
    let running = Running::start(setup.command("send").args(["--json", "a.eml"]));
    eventually("the mail is there", || setup.arrived().len() == 1).await;
    running.signal(libc::SIGINT);
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.signal(libc::SIGINT);
    let run = running.end().await;
    run.ends_with(130);
    assert!(run.took < Duration::from_secs(20), "{run:?}");
    let object = &run.json()[0];
    assert_eq!(
        (&object["result"], &object["reason"]),
        (&"unknown".into(), &"stopped".into())
    );
    assert_eq!(setup.redis.connection().status(KEY).open, 0);
}

#[tokio::test]
async fn ctrl_c_ends_a_read_that_goes_on_for_ever() {
    let setup = Setup::new().await;
    let running = Running::start(setup.command("send").arg("-").stdin(std::process::Stdio::piped()));
    tokio::time::sleep(Duration::from_millis(500)).await;
    running.signal(libc::SIGINT);
    let run = running.end().await;
    run.ends_with(130).says("-: not sent, interrupted");
    assert!(run.took < Duration::from_secs(20), "{run:?}");
}
