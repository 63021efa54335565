//! `mailrl worker` as a process, with a real Redis and a real simulator of Graph.

mod common;

use std::time::Duration;

use common::*;
use graph_sim::Fault;
use test_support::RedisServer;
use tokio::process::Command;

const OTHER: &str = "orders@example.com";

/// A worker's usual setup: limits that are out of the way, and a configuration file.
async fn setup() -> Setup {
    let setup = Setup::new().await;
    configure(&setup, "");
    setup
}

/// Writes the configuration that the worker watches.
fn configure(setup: &Setup, more: &str) {
    let url = setup.graph.base_url();
    let text = format!(
        "[redis]\nurl = '{}'\ndeadline_ms = 5000\n[graph]\ntenant = 'tenant'\nclient_id = 'app'\n\
         login_url = '{url}'\ngraph_url = '{url}'\n[limits]\nrate_limit_per_minute = 1000\n{more}",
        setup.redis.url()
    );
    setup.file("mailrl.toml", text);
}

/// The command, configured by the file alone.
fn command(setup: &Setup, words: &[&str]) -> Command {
    let mut command = bare_command(setup.folder.path());
    command.args(words).env("MAILRL_CLIENT_SECRET", SECRET);
    command
}

/// Queues a mail under this name.
async fn enqueue(setup: &Setup, from: &str, name: &str) {
    let mail = format!("From: {from}\r\nTo: a@example.net\r\nSubject: {name}\r\n\r\nHello.\r\n");
    setup.file("mail.eml", mail);
    let run = run(&mut command(setup, &["enqueue", "--id", name, "mail.eml"])).await;
    run.ends_with(0).says("1 queued");
}

async fn start(setup: &Setup) -> Running {
    let mut worker = Running::start(&mut command(setup, &["worker"]));
    worker.until_it_says("sending what waits in").await;
    worker
}

async fn arrives(setup: &Setup, name: &str) {
    eventually(name, || setup.arrived().iter().any(|subject| subject == name)).await;
}

async fn state(setup: &Setup, name: &str) -> String {
    let run = run(&mut command(setup, &["queue", "show", "--json", name])).await;
    run.ends_with(0).json()[0]["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_queued_is_sent_and_the_end_is_orderly_and_tells_no_secret() {
    let setup = setup().await;
    enqueue(&setup, MAILBOX, "first").await;
    let mut worker = start(&setup).await;
    enqueue(&setup, MAILBOX, "second").await;
    for name in ["first", "second"] {
        arrives(&setup, name).await;
        worker.until_it_says("mail.sent").await;
    }
    worker.signal(libc::SIGTERM);
    let run = worker.end().await;
    run.ends_with(0)
        .says("mailrl: 2 messages sent; put off 0 times, tried again 0 times; 0 failed, 0 unknown");
    assert!(!run.output().contains(SECRET), "{run:#?}");
    assert_eq!(state(&setup, "first").await, "SENT");
}

#[tokio::test]
async fn the_first_sigterm_lets_a_slow_send_finish() {
    let setup = setup().await;
    setup.graph.set_latency(2_000..=2_000);
    let worker = start(&setup).await;
    enqueue(&setup, MAILBOX, "slow").await;
    let report = || setup.graph.report().mailbox(MAILBOX);
    eventually("it is being sent", || report().most_requests == 1).await;
    worker.signal(libc::SIGTERM);
    worker.end().await.ends_with(0).says("1 message sent");
    assert_eq!(setup.arrived(), ["slow"]);
    assert_eq!(state(&setup, "slow").await, "SENT");
}

#[tokio::test]
async fn a_changed_limit_holds_within_a_second_and_for_its_mailbox_only() {
    let setup = setup().await;
    let mut worker = start(&setup).await;
    enqueue(&setup, MAILBOX, "before").await;
    arrives(&setup, "before").await;
    configure(
        &setup,
        &format!("[mailbox.'{MAILBOX}']\nrate_limit_per_minute = 1\n"),
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    enqueue(&setup, MAILBOX, "braked").await;
    worker.until_it_says("mail.rateLimit.deferred").await;
    for name in ["free-1", "free-2"] {
        enqueue(&setup, OTHER, name).await;
        arrives(&setup, name).await;
    }
    assert_eq!(state(&setup, "braked").await, "SCHEDULED");
    assert_eq!(setup.arrived(), ["before", "free-1", "free-2"]);
}

#[tokio::test]
async fn a_worker_that_starts_before_redis_waits_for_it_and_can_be_ended_meanwhile() {
    let mut setup = setup().await;
    enqueue(&setup, MAILBOX, "early").await;
    setup.redis.shut_down(true);
    let mut worker = Running::start(&mut command(&setup, &["worker"]));
    let mut impatient = Running::start(&mut command(&setup, &["worker"]));
    impatient.until_it_says("mail.queue.error").await;
    impatient.signal(libc::SIGTERM);
    impatient.end().await.ends_with(0);
    setup.redis.restart();
    worker.until_it_says("sending what waits in").await;
    arrives(&setup, "early").await;
}

#[tokio::test]
async fn a_mail_that_may_have_been_sent_is_listed_until_a_person_settles_it() {
    let setup = setup().await;
    setup.graph.inject(Fault::answer(504));
    let mut worker = start(&setup).await;
    enqueue(&setup, MAILBOX, "doubtful").await;
    worker.until_it_says("mail.unknown").await;
    eventually_listed(&setup, "doubtful").await;
    let settled = run(&mut command(&setup, &["queue", "sent", "doubtful"])).await;
    settled.ends_with(0).says("(it was UNKNOWN)");
    let listed = run(&mut command(&setup, &["queue", "--state", "unknown"])).await;
    listed.ends_with(0).says("no messages");
    assert_eq!(state(&setup, "doubtful").await, "SENT");
    worker.signal(libc::SIGTERM);
    worker.end().await.ends_with(0).says("1 unknown");
}

/// The log comes a moment before the record is settled.
async fn eventually_listed(setup: &Setup, name: &str) {
    for _ in 0..50 {
        let listed = run(&mut command(setup, &["queue", "--state", "unknown"])).await;
        if listed.ends_with(0).stdout.contains(name) {
            return;
        }
    }
    panic!("{name} is never listed");
}

#[tokio::test]
async fn without_the_limiters_redis_mail_goes_out_and_that_is_logged() {
    let setup = setup().await;
    let queue = setup.redis.url();
    let mut words = command(&setup, &["worker", "--queue-redis", &queue]);
    let mut worker = Running::start(words.env("MAILRL_REDIS", nobody("redis")));
    enqueue(&setup, MAILBOX, "unbraked").await;
    worker.until_it_says("mail.rateLimit.redisError").await;
    arrives(&setup, "unbraked").await;
    worker.signal(libc::SIGTERM);
    worker.end().await.ends_with(0).says("1 message sent");
}

#[tokio::test]
async fn a_wrong_configuration_ends_with_2_and_says_what_to_do_without_secrets() {
    let setup = setup().await;
    let wrong = |text: &str| setup.file("wrong.toml", text);
    for (text, advice) in [
        ("[queue]\nconcurency = 5\n", "unknown key"),
        ("[redis]\nurl = 'http://u:pass-word@127.0.0.1'\n", "redis://"),
        ("[queue]\nredis_url = 'no:pass-word@address'\n", "redis://"),
        (
            "[store]\nurl = 'ftp://u:pass-word@host/x'\n",
            "s3://bucket/prefix",
        ),
        ("[limits]\nrate_limit_per_minute = 0\n", "line 2"),
    ] {
        wrong(text);
        let run = run(&mut command(&setup, &["worker", "--config", "wrong.toml"])).await;
        run.ends_with(2).says(advice);
        assert!(!run.output().contains("pass-word"), "{run:#?}");
    }
}

#[tokio::test]
async fn a_queue_over_tls_is_reached_by_the_certificates_that_the_system_trusts() {
    let setup = setup().await;
    let (_queue, url) = RedisServer::over_tls(setup.folder.path());
    let over_tls = |words: &[&str]| {
        let mut command = command(&setup, words);
        command
            .env("MAILRL_QUEUE_REDIS", &url)
            .env("SSL_CERT_FILE", setup.folder.path().join("certificate.pem"))
            .env_remove("SSL_CERT_DIR");
        command
    };
    setup.file("mail.eml", mail("over TLS"));
    run(&mut over_tls(&["enqueue", "mail.eml"])).await.ends_with(0);
    let mut worker = Running::start(&mut over_tls(&["worker"]));
    worker.until_it_says("sending what waits in").await;
    arrives(&setup, "over TLS").await;
}
