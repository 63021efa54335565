//! `mailrl limits`, `mailrl pause` and `mailrl resume`.

mod common;

use std::time::Duration;

use common::*;
use serde_json::json;
use test_support::{Calls, RedisServer};

async fn at(setup: &Setup, redis: &str, words: &str) -> Run {
    let (subcommand, arguments) = words.split_once(' ').unwrap();
    let arguments = arguments.split(' ');
    run(setup.command(subcommand).args(["--redis", redis]).args(arguments)).await
}

async fn ask(setup: &Setup, words: &str) -> Run {
    at(setup, &setup.redis.url(), words).await
}

#[tokio::test]
async fn limits_are_shown_beside_the_defaults() {
    let setup = Setup::with(["window", "rolling", "per-minute", "30"], sim()).await;
    let run = ask(&setup, "limits News@Example.com").await;
    run.ends_with(0);
    let lines: Vec<_> = run
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "news@example.com",
            "override default",
            "messages a minute - 30",
            "recipients a day - 9,000",
            "sends at once - the sender's",
        ]
    );
    // To look at a mailbox that never sent leaves nothing behind.
    assert_eq!(setup.redis.connection().snapshot(KEY.as_bytes()).expires_at, -2);
}

#[tokio::test]
async fn limits_are_set_one_by_one_and_hold_at_once() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    ask(&setup, "limits news@example.com --per-minute 1")
        .await
        .ends_with(0);
    let run = ask(
        &setup,
        "limits --recipients-per-day 1234 news@example.com --concurrent 1024",
    )
    .await;
    run.ends_with(0).says("1,234          9,000").says("1,024");
    redis.allowed(KEY, "1");
    assert_eq!(redis.denied(KEY, "1 PERMINUTE 100").0, "minute");
    ask(&setup, "status news@example.com")
        .await
        .says("overrides  per minute 1, recipients per day 1,234, concurrent 1,024");
    ask(&setup, "limits news@example.com --reset").await.ends_with(0);
    redis.allowed(KEY, "1");
    assert_eq!(redis.limits(KEY, "").0, test_support::Overrides::default());
}

#[tokio::test]
async fn limits_are_the_same_json_in_both_protocols() {
    let setup = Setup::new().await;
    setup.redis.connection().limits(KEY, "PERDAY 4294967295");
    for parameters in ["", "/?protocol=resp3"] {
        let url = format!("{}{parameters}", setup.redis.url());
        let run = at(&setup, &url, "limits --json NEWS@example.com").await;
        run.ends_with(0);
        let expected = json!({
            "mailbox": MAILBOX,
            "overrides": { "per_minute": null, "recipients_per_day": 4_294_967_295_u32, "concurrent": null },
            "defaults": { "per_minute": 25, "recipients_per_day": 9_000 },
        });
        assert_eq!(run.json(), [expected]);
    }
}

#[tokio::test]
async fn a_pause_holds_for_all_and_says_until_when() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    for parameters in ["", "/?protocol=resp3"] {
        let url = format!("{}{parameters}", setup.redis.url());
        at(&setup, &url, "resume news@example.com").await.ends_with(0);
        let run = at(&setup, &url, "pause News@Example.com 90s").await;
        run.ends_with(0)
            .says("news@example.com: paused until ")
            .says(" UTC (in 1 min 30 s)");
        assert!(!run.output().contains("longer"), "{run:?}");
        assert_eq!(redis.denied(KEY, "1").0, "paused");
        assert!((80_000..=90_000).contains(&redis.status(KEY).paused_for_ms));
    }
}

#[tokio::test]
async fn the_longer_pause_wins_and_it_is_told() {
    let setup = Setup::new().await;
    ask(&setup, "pause news@example.com 2h").await.ends_with(0);
    ask(&setup, "pause news@example.com 10m")
        .await
        .ends_with(0)
        .says("(in 2 h), a longer pause was there already");
    let run = ask(&setup, "pause news@example.com 24h").await;
    run.ends_with(0).says("(in 24 h)");
    assert!(!run.output().contains("longer"), "{run:?}");
}

#[tokio::test]
async fn a_pause_is_told_by_this_machines_clock_whatever_that_of_redis_says() {
    let setup = Setup {
        redis: RedisServer::at_noon(["window", "rolling"]),
        ..Setup::new().await
    };
    let run = ask(&setup, "pause news@example.com 10m").await;
    run.ends_with(0).says("(in 10 min)");
    assert!(!run.output().contains("longer"), "{run:?}");
}

#[tokio::test]
async fn mailboxes_may_send_again_whether_they_were_paused_or_not() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.pause(KEY, 60_000);
    let run = ask(&setup, "resume News@Example.com idle@example.com").await;
    run.ends_with(0)
        .says("news@example.com: not paused any more")
        .says("idle@example.com: not paused any more");
    redis.allowed(KEY, "1");
    assert_eq!(redis.snapshot(b"mailrl:idle@example.com").expires_at, -2);
}

#[tokio::test]
async fn what_no_mailbox_can_be_held_to_is_wrong_usage() {
    let setup = Setup::new().await;
    for (words, text) in [
        ("limits news@example.com --per-minute 0", "0 is not in"),
        ("limits news@example.com --per-minute=-1", "invalid value '-1'"),
        (
            "limits news@example.com --recipients-per-day 4294967296",
            "4294967296 is not in",
        ),
        ("limits news@example.com --concurrent 1025", "1025 is not in"),
        ("limits news@example.com --per-minute ten", "invalid"),
        (
            "limits news@example.com --reset --per-minute 5",
            "cannot be used with",
        ),
        ("limits --json", "<MAILBOX>"),
        ("pause news@example.com", "<DURATION>"),
        ("pause news@example.com 90", "give a number and its unit"),
        ("pause news@example.com soon", "give a number and its unit"),
        ("pause news@example.com 0s", "mailrl resume"),
        ("pause news@example.com 25h", "24h at most"),
    ] {
        let run = ask(&setup, words).await;
        run.ends_with(2).says(text);
        assert!(run.stdout.is_empty(), "{run:?}");
    }
    run(&mut setup.command("resume"))
        .await
        .ends_with(2)
        .says("<MAILBOX>");
    assert_eq!(setup.redis.connection().snapshot(KEY.as_bytes()).expires_at, -2);
}

const EACH: [&str; 3] = [
    "limits news@example.com",
    "pause news@example.com 10m",
    "resume news@example.com",
];

#[tokio::test]
async fn a_redis_that_is_not_there_is_told() {
    let setup = Setup::new().await;
    let nobody = nobody("redis");
    for words in EACH {
        let run = at(&setup, &nobody, words).await;
        run.ends_with(1)
            .says("news@example.com: Redis at")
            .says("cannot be reached")
            .says("--redis");
        assert!(run.stdout.is_empty(), "{run:?}");
    }
    let run = at(&setup, &nobody, "limits --json news@example.com").await;
    run.ends_with(1);
    assert_eq!(run.json()[0]["reason"], "unreachable");
    at(&setup, "http://example.com", "resume news@example.com")
        .await
        .ends_with(2);
}

#[tokio::test]
async fn a_redis_that_does_not_answer_is_given_two_seconds() {
    let setup = Setup::new().await;
    setup.redis.freeze();
    let run = ask(&setup, "pause news@example.com 10m").await;
    setup.redis.thaw();
    run.ends_with(1).says("did not answer within 2 s");
    assert!(run.took < Duration::from_secs(4), "{run:?}");
}

#[tokio::test]
async fn a_missing_module_or_permission_and_a_foreign_value_are_told_with_the_remedy() {
    let setup = Setup::new().await;
    let plain = RedisServer::builder().start();
    let mut redis = setup.redis.connection();
    redis.ask::<()>("ACL SETUSER reader on >secret ~mailrl:* +ping +client");
    let reader = setup.redis.url().replace("redis://", "redis://reader:secret@");
    for (words, command) in EACH.into_iter().zip(["limits", "pause", "pause"]) {
        at(&setup, &plain.url(), words)
            .await
            .ends_with(1)
            .says("load libmailrl.so");
        at(&setup, &reader, words)
            .await
            .ends_with(1)
            .says(&format!("ACL SETUSER <user> +mailrl.{command} ~mailrl:*"));
    }
    // Who may pause need not be able to ask for a status.
    redis.ask::<()>("ACL SETUSER reader +mailrl.pause");
    at(&setup, &reader, "pause news@example.com 10m")
        .await
        .ends_with(0)
        .says("(in 10 min)");
    redis.ask::<()>("SET mailrl:news@example.com x");
    for words in EACH {
        ask(&setup, words)
            .await
            .ends_with(1)
            .says("its key holds something that is not a mailbox's state (BADSTATE");
    }
    assert_eq!(redis.value(KEY), b"x");
}

#[tokio::test]
async fn one_mailbox_that_cannot_be_resumed_holds_up_no_other() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.ask::<()>("LPUSH mailrl:list@example.com x");
    redis.pause(KEY, 60_000);
    ask(&setup, "resume list@example.com news@example.com")
        .await
        .ends_with(1)
        .says("list@example.com: its key holds something")
        .says("news@example.com: not paused any more");
    redis.allowed(KEY, "1");
}

#[tokio::test]
async fn a_replica_is_told_to_be_one() {
    let setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", test_support::free_port()));
    ask(&setup, "pause news@example.com 10m")
        .await
        .ends_with(1)
        .says("only reads")
        .says("to its primary");
}

#[tokio::test]
async fn the_help_has_examples() {
    let setup = Setup::new().await;
    for subcommand in ["limits", "pause", "resume"] {
        run(setup.command(subcommand).arg("--help"))
            .await
            .ends_with(0)
            .says("Example")
            .says(&format!("  mailrl {subcommand} news@example.com"))
            .says("Exit codes:");
    }
}
