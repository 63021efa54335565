//! `mailrl status`: what it shows, and what it says when it cannot.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use common::*;
use test_support::{Calls, RedisServer};

async fn status(setup: &Setup, redis: &str, arguments: &[&str]) -> Run {
    run(setup.command("status").args(["--redis", redis]).args(arguments)).await
}

#[tokio::test]
async fn both_windows_pause_and_open_reservations_are_shown() {
    let setup = Setup::with(["window", "rolling", "per-minute", "4"], sim()).await;
    let mut redis = setup.redis.connection();
    redis.allowed(KEY, "1200");
    redis.allowed(KEY, "34");
    redis.pause(KEY, 30_000);
    let run = status(
        &setup,
        &setup.redis.url(),
        &["News@Example.com", "idle@example.com"],
    )
    .await;
    run.ends_with(0)
        .says("news@example.com (rolling windows)")
        .says("minute     ██████████░░░░░░░░░░ 2 / 4 messages")
        .says("day        ██░░░░░░░░░░░░░░░░░░ 1,234 / 9,000 recipients")
        .says("room now")
        .says("2 open reservations")
        .says("paused     until ")
        .says(" UTC (in 30 s)")
        .says("idle@example.com (rolling windows)")
        .says("minute     ░░░░░░░░░░░░░░░░░░░░ 0 / 4 messages")
        .says("no open reservation");
    redis.pause(KEY, 0);
    redis.allowed(KEY, "1");
    redis.allowed(KEY, "1");
    let run = status(&setup, &setup.redis.url(), &[MAILBOX]).await;
    run.ends_with(0)
        .says("minute     ████████████████████ 4 / 4 messages")
        .says("room at ");
    assert!(!run.stdout.contains("paused"), "{run:?}");
}

#[tokio::test]
async fn json_is_one_object_a_mailbox() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.allowed(KEY, "3");
    redis.pause(KEY, 30_000);
    for parameters in ["", "/?protocol=resp3"] {
        let url = format!("{}{parameters}", setup.redis.url());
        let run = status(&setup, &url, &["--json", MAILBOX, "idle@example.com"]).await;
        run.ends_with(0);
        let json = run.json();
        assert_eq!(json.len(), 2);
        assert_eq!(json[0]["mailbox"], MAILBOX);
        assert_eq!(json[0]["window"], "rolling");
        assert_eq!(json[0]["minute"]["used"], 1);
        assert_eq!(json[0]["minute"]["limit"], 25);
        assert_eq!(json[0]["minute"]["room_in_ms"], 0);
        assert_eq!(json[0]["day"]["used"], 3);
        assert_eq!(json[0]["day"]["limit"], 9000);
        assert_eq!(json[0]["open"], 1);
        assert!((20_000..=30_000).contains(&json[0]["paused_for_ms"].as_u64().unwrap()));
        assert!(json[0]["overrides"]["per_minute"].is_null());
        assert_eq!(json[1]["mailbox"], "idle@example.com");
        assert_eq!(json[1]["day"]["used"], 0);
    }
}

/// Expects that no status is had, and why.
async fn fails(setup: &Setup, redis: &str, reason: &str, texts: &[&str]) {
    let run = status(setup, redis, &[MAILBOX]).await;
    run.ends_with(1);
    assert!(run.stdout.is_empty(), "{run:?}");
    assert!(run.took < Duration::from_secs(4), "{run:?}");
    for text in texts {
        run.says(text);
    }
    let run = status(setup, redis, &["--json", MAILBOX, "b@example.com"]).await;
    run.ends_with(1);
    let json = run.json();
    assert_eq!((json.len(), &json[0]["reason"]), (2, &reason.into()), "{json:?}");
    assert!(json[0]["error"].as_str().unwrap().contains(texts[0]), "{json:?}");
    assert_eq!(json[1]["mailbox"], "b@example.com");
}

#[tokio::test]
async fn a_redis_that_is_not_there_is_told() {
    let setup = Setup::new().await;
    let nobody = nobody("redis");
    let address = nobody.trim_start_matches("redis://");
    fails(
        &setup,
        &nobody,
        "unreachable",
        &["cannot be reached", address, "refused", "--redis"],
    )
    .await;
}

#[tokio::test]
async fn a_redis_that_does_not_answer_is_given_two_seconds() {
    let setup = Setup::new().await;
    setup.redis.freeze();
    fails(
        &setup,
        &setup.redis.url(),
        "timeout",
        &["did not answer within 2 s"],
    )
    .await;
    setup.redis.thaw();
}

#[tokio::test]
async fn a_redis_without_the_module_is_told_what_to_load() {
    let setup = Setup::new().await;
    let plain = RedisServer::builder().start();
    fails(
        &setup,
        &plain.url(),
        "module_missing",
        &["load libmailrl.so", "--loadmodule"],
    )
    .await;
}

#[tokio::test]
async fn a_missing_password_or_permission_is_told_with_the_remedy() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.ask::<()>("ACL SETUSER reader on >secret ~mailrl:* +ping +client");
    let url = setup.redis.url().replace("redis://", "redis://reader:secret@");
    fails(
        &setup,
        &url,
        "no_permission",
        &["ACL SETUSER <user> +mailrl.status ~mailrl:*"],
    )
    .await;
    redis.ask::<()>("ACL SETUSER reader +mailrl.status");
    status(&setup, &url, &[MAILBOX]).await.ends_with(0);

    let url = setup.redis.url().replace("redis://", "redis://reader:wrong@");
    fails(
        &setup,
        &url,
        "no_auth",
        &[
            "wants a password, or another one",
            "redis://user:password@host:port",
        ],
    )
    .await;
    redis.ask::<()>("ACL SETUSER default >needed");
    redis.ask::<()>("ACL SETUSER default resetpass >needed");
    fails(&setup, &setup.redis.url(), "no_auth", &["wants a password"]).await;
}

#[tokio::test]
async fn a_key_that_is_no_mailbox_is_told_and_the_others_are_shown() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.ask::<()>("LPUSH mailrl:list@example.com x");
    redis.ask::<()>("SET mailrl:text@example.com x");
    let names = ["list@example.com", "text@example.com", MAILBOX];
    let run = status(&setup, &setup.redis.url(), &names).await;
    run.ends_with(1)
        .says("list@example.com: its key holds something that is not a mailbox's state (WRONGTYPE")
        .says("text@example.com: its key holds something that is not a mailbox's state (BADSTATE")
        .says("news@example.com (rolling windows)");
    let json = status(&setup, &setup.redis.url(), &[&["--json"], &names[..]].concat())
        .await
        .json();
    let reasons: Vec<_> = json.iter().map(|object| object["reason"].as_str()).collect();
    assert_eq!(reasons, [Some("wrong_type"), Some("bad_state"), None]);
}

#[tokio::test]
async fn what_is_not_redis_is_told() {
    let setup = Setup::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let _ = stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    fails(&setup, &url, "not_redis", &["is not Redis"]).await;
}
