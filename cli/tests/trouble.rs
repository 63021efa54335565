//! `mailrl send` when Redis or Graph is not well.

mod common;

use std::time::Duration;

use common::*;
use graph_sim::Fault;
use test_support::{Calls, RedisServer};

/// Sends one mail and expects that it goes out without the brake, for this cause.
async fn goes_out_unbraked(setup: &Setup, redis: &str, cause: &str) {
    setup.mail("mail.eml");
    let before = setup.arrived().len();
    let run = run(setup.command("send").args(["--redis", redis, "mail.eml"])).await;
    run.ends_with(0)
        .says("mail.eml: warning: went out without the brake, since Redis gave no decision")
        .says(&format!("({cause}: "))
        .says("mail.eml: sent from news@example.com")
        .says("1 mail: 1 sent, 0 deferred, 0 failed, 0 unknown; 1 went out without the brake")
        .says("mail.rateLimit.redisError");
    assert!(run.took < Duration::from_secs(3), "{run:?}");
    assert_eq!(setup.arrived().len(), before + 1);
    let json = common::run(
        setup
            .command("send")
            .args(["--redis", redis, "--json", "--log", "off", "mail.eml"]),
    )
    .await;
    let object = &json.ends_with(0).json()[0];
    assert_eq!(
        (&object["result"], &object["fail_open"]),
        (&"sent".into(), &cause.into())
    );
    assert!(!json.stderr.contains("redisError"), "{json:?}");
}

#[tokio::test]
async fn without_redis_mail_goes_out_with_a_warning() {
    let setup = Setup::new().await;
    goes_out_unbraked(&setup, &nobody("redis"), "unreachable").await;
}

#[tokio::test]
async fn without_the_module_mail_goes_out_with_a_warning() {
    let setup = Setup::new().await;
    let plain = RedisServer::builder().start();
    goes_out_unbraked(&setup, &plain.url(), "module_missing").await;
}

#[tokio::test]
async fn with_a_frozen_redis_mail_goes_out_with_a_warning() {
    let setup = Setup::new().await;
    setup.redis.freeze();
    goes_out_unbraked(&setup, &setup.redis.url(), "timeout").await;
    setup.redis.thaw();
}

#[tokio::test]
async fn every_unbraked_mail_of_many_says_so_and_gives_the_first_cause() {
    let setup = Setup::new().await;
    let files: Vec<_> = (0..8).map(|number| format!("{number}.eml")).collect();
    for file in &files {
        setup.mail(file);
    }
    let redis = nobody("redis");
    let run = run(setup
        .command("send")
        .args(["--redis", &redis, "--json"])
        .args(&files))
    .await;
    run.ends_with(0).says("8 went out without the brake");
    for object in run.json() {
        assert_eq!(object["fail_open"], "unreachable", "{object}");
    }
    assert_eq!(setup.arrived(), files);
}

#[tokio::test]
async fn without_graph_a_mail_fails_and_its_budget_is_free_again() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    setup.mail("b.eml");
    let run = run(setup
        .command("send")
        .env("MAILRL_GRAPH_URL", nobody("http"))
        .args(["a.eml", "b.eml"]))
    .await;
    run.ends_with(1).says("2 failed");
    let line = run.line("b.eml");
    assert!(
        line.contains("failed: the connection to Microsoft Graph failed"),
        "{line}"
    );
    assert!(line.contains("refused"), "{line}");
    let status = setup.redis.connection().status(KEY);
    assert_eq!((status.minute.used, status.day.used, status.open), (0, 0, 0));
    assert_eq!(setup.redis.connection().counter("mailrl", "mailrl_released"), 2);
}

#[tokio::test]
async fn a_mail_that_failed_did_not_go_out_without_the_brake() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    let run = run(setup
        .command("send")
        .env("MAILRL_GRAPH_URL", nobody("http"))
        .args(["--redis", &nobody("redis"), "--json", "a.eml"]))
    .await;
    run.ends_with(1);
    assert!(run.json()[0]["fail_open"].is_null(), "{run:?}");
    assert!(!run.stderr.contains("without the brake"), "{run:?}");
}

#[tokio::test]
async fn without_a_token_a_mail_fails_and_its_budget_is_free_again() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    let run = run(setup
        .command("send")
        .env("MAILRL_CLIENT_SECRET", "a-wrong-secret")
        .args(["--json", "a.eml"]))
    .await;
    run.ends_with(1);
    assert_eq!(run.json()[0]["reason"], "token");
    assert!(!run.output().contains("a-wrong-secret"));
    assert_eq!(setup.redis.connection().used(KEY), (0, 0));
}

#[tokio::test]
async fn a_mail_of_which_nobody_knows_is_told_and_not_sent_again() {
    let setup = Setup::new().await;
    for name in ["a.eml", "b.eml", "no.eml"] {
        setup.mail(name);
    }
    setup.file("no.eml", "");
    setup.graph.inject(Fault::answer(504).after_accepting());
    let run = setup.send(["--wait", "a.eml", "b.eml", "no.eml"]).await;
    run.ends_with(4)
        .says("3 mails: 1 sent, 0 deferred, 1 failed, 1 unknown");
    let line = run.line("a.eml");
    assert!(
        line.contains("unknown, may have been sent, and is not sent again"),
        "{line}"
    );
    assert!(line.contains("504"), "{line}");
    assert_eq!(setup.arrived(), ["a.eml", "b.eml"]);
    assert_eq!(setup.redis.connection().status(KEY).open, 0);
    assert_eq!(setup.redis.connection().used(KEY), (2, 2));
}

#[tokio::test]
async fn a_send_that_takes_too_long_is_unknown() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    setup.graph.inject(Fault::hang().after_accepting());
    let run = setup.send(["--timeout-s", "1", "--json", "a.eml"]).await;
    run.ends_with(4);
    assert_eq!(run.json()[0]["reason"], "timeout");
    assert!(run.took < Duration::from_secs(6), "{run:?}");
}

#[tokio::test]
async fn a_lease_is_a_little_longer_than_a_send_may_take() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    let mut redis = setup.redis.connection();
    redis.ask::<()>("CONFIG SET slowlog-log-slower-than 0");
    setup.send(["--timeout-s", "77", "a.eml"]).await.ends_with(0);
    let commands: Vec<(u64, u64, u64, Vec<String>, String, String)> = redis.ask("SLOWLOG GET");
    let reserve = commands
        .into_iter()
        .map(|(_, _, _, words, ..)| words.join(" "))
        .find(|words| words.starts_with("MAILRL.RESERVE"));
    let expected = format!("MAILRL.RESERVE {KEY} 1 CONCURRENT 3 LEASE 87000");
    assert_eq!(reserve, Some(expected));
}

#[tokio::test]
async fn nothing_is_sent_once_nobody_reads_the_results() {
    let setup = Setup::new().await;
    for name in ["a.eml", "b.eml", "c.eml"] {
        setup.mail(name);
    }
    let mut command = setup.command("send");
    let mut child = command.args(["a.eml", "b.eml", "c.eml"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("nobody reads the results"), "{stderr}");
    assert!(stderr.contains("c.eml: not sent"), "{stderr}");
    assert_eq!(setup.arrived(), ["a.eml"]);
}
