//! `mailrl send`: what arrives, and what is said of it.

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::*;
use graph_sim::Fault;
use test_support::Calls;

#[tokio::test]
async fn every_sample_arrives_at_exactly_its_recipients_and_the_broken_ones_hold_up_no_other() {
    let setup = Setup::new().await;
    let mut files: Vec<PathBuf> = samples()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "eml"))
        .collect();
    files.sort();
    let run = setup.send(&files).await;
    run.ends_with(1)
        .says("15 mails: 10 sent, 0 deferred, 5 failed, 0 unknown");
    for broken in [
        "007",
        "malformed-000",
        "malformed-005",
        "malformed-012",
        "malformed-018",
    ] {
        let line = run.line(&format!("/{broken}.eml"));
        assert!(line.contains("failed: no sender"), "{line}");
        assert!(line.contains("--from"), "{line}");
    }
    let counts = |prefix: &str| setup_recipients(&setup).get(prefix).copied().unwrap_or(0);
    assert_eq!(counts("recipient@example.com"), 4);
    assert_eq!(counts("someone@example.com"), 1);
    assert_eq!(counts("ops@example.com"), 1);
    // Twice in the same header: the mailbox pays for both.
    assert_eq!(counts("a@example.net"), 1);
    assert_eq!(counts("b@example.net"), 2);
    assert_eq!(counts("een@example.net"), 1);
    assert_eq!(counts("klant@example.net"), 1);
    assert_eq!(
        setup_recipients(&setup)
            .values()
            .filter(|count| **count == 1)
            .count(),
        120 + 5
    );
    let update = setup
        .graph
        .messages()
        .into_iter()
        .find(|message| message.recipients.len() == 120)
        .unwrap();
    assert_eq!(update.mailbox, "campagne@example.com");
    for file in files {
        let content = std::fs::read(&file).unwrap();
        let arrived = setup
            .graph
            .messages()
            .iter()
            .filter(|it| it.raw.as_deref() == Some(&content))
            .count();
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_sent = run.line(&format!("/{name}")).contains(": sent from ");
        assert_eq!(arrived, usize::from(is_sent), "{}", file.display());
    }
    let used = setup.redis.connection().used("mailrl:campagne@example.com");
    assert_eq!(used, (2, 121));
}

fn setup_recipients(setup: &Setup) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for recipient in setup
        .graph
        .messages()
        .into_iter()
        .flat_map(|message| message.recipients)
    {
        *counts.entry(recipient.to_ascii_lowercase()).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn a_mail_that_its_mailbox_has_no_budget_for_is_deferred_to_a_time() {
    let setup = Setup::with(["window", "rolling", "per-minute", "2"], sim()).await;
    for name in ["1.eml", "2.eml", "3.eml"] {
        setup.mail(name);
    }
    let run = setup.send(["1.eml", "2.eml", "3.eml"]).await;
    run.ends_with(3)
        .says("3 mails: 2 sent, 1 deferred, 0 failed, 0 unknown");
    let line = run.line("3.eml");
    assert!(line.starts_with("3.eml: deferred, may go at "), "{line}");
    assert!(
        line.ends_with("UTC (in 1 min): news@example.com has used up its messages of the minute (minute)")
            || line.contains(" s): news"),
        "{line}"
    );
    assert_eq!(setup.arrived(), ["1.eml", "2.eml"]);

    let run = setup.send(["--json", "3.eml"]).await;
    run.ends_with(3);
    let json = &run.json()[0];
    assert_eq!(json["result"], "deferred");
    assert_eq!(json["reason"], "minute");
    let wait_ms = json["retry_after_ms"].as_u64().unwrap();
    assert!((50_000..=130_000).contains(&wait_ms), "{json}");
    let not_before = json["not_before"].as_str().unwrap();
    let ahead = not_before
        .parse::<jiff::Timestamp>()
        .unwrap()
        .duration_since(jiff::Timestamp::now());
    let ahead_ms = u64::try_from(ahead.as_millis()).unwrap();
    assert!(ahead_ms <= wait_ms && ahead_ms + 5_000 > wait_ms, "{json}");
}

#[tokio::test]
async fn a_mailbox_is_sent_from_whatever_the_file_says() {
    let setup = Setup::new().await;
    setup.mail("mail.eml");
    setup.file("nobody.eml", "To: a@example.net\nSubject: x\n\n");
    let run = setup
        .send(["--from", "Other@Example.com", "mail.eml", "nobody.eml"])
        .await;
    run.ends_with(0)
        .says("mail.eml: sent from other@example.com to 1 recipient");
    assert!(
        setup
            .graph
            .messages()
            .iter()
            .all(|message| message.mailbox == "other@example.com")
    );
    let mut redis = setup.redis.connection();
    assert_eq!(redis.used("mailrl:other@example.com"), (2, 2));
    assert_eq!(redis.used(KEY), (0, 0));
    setup
        .send(["--from", "not an address", "mail.eml"])
        .await
        .ends_with(2)
        .says("--from");
}

#[tokio::test]
async fn a_mail_comes_from_standard_input() {
    let setup = Setup::new().await;
    let run = run_with_input(setup.command("send").args(["-", "-"]), mail("piped")).await;
    run.ends_with(0)
        .says("-: sent from news@example.com to 1 recipient")
        .says("-: named twice, sent once");
    assert_eq!(setup.arrived(), ["piped"]);
    run_with_input(setup.command("send").arg("-"), "")
        .await
        .ends_with(1)
        .says("-: failed: it is empty");
}

#[tokio::test]
async fn json_has_the_same_fields_for_every_file_and_nothing_else_is_on_stdout() {
    let setup = Setup::with(["window", "rolling", "per-minute", "2"], sim()).await;
    for name in ["sent.eml", "unknown.eml", "deferred.eml"] {
        setup.mail(name);
    }
    let run = setup.send(["--json", "sent.eml", "missing.eml"]).await;
    run.ends_with(1);
    setup.graph.inject(Fault::answer(504).after_accepting());
    let second = setup.send(["--json", "unknown.eml", "deferred.eml"]).await;
    second.ends_with(4);
    let json = [run.json(), second.json()].concat();
    let results: Vec<_> = json
        .iter()
        .map(|object| {
            (
                object["file"].as_str().unwrap(),
                object["result"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        results,
        [
            ("sent.eml", "sent"),
            ("missing.eml", "failed"),
            ("unknown.eml", "unknown"),
            ("deferred.eml", "deferred")
        ]
    );
    let fields = [
        "error",
        "fail_open",
        "file",
        "mailbox",
        "not_before",
        "reason",
        "recipients",
        "result",
        "retry_after_ms",
        "waits",
    ];
    for object in &json {
        assert_eq!(
            object.as_object().unwrap().keys().collect::<Vec<_>>(),
            fields,
            "{object}"
        );
        assert!(object["fail_open"].is_null(), "{object}");
    }
    assert_eq!(
        (&json[0]["mailbox"], &json[0]["recipients"]),
        (&MAILBOX.into(), &1.into())
    );
    assert!(json[1]["mailbox"].is_null() && json[1]["recipients"].is_null());
    assert_eq!(json[1]["reason"], "unreadable");
    assert_eq!(json[2]["reason"], "graph");
    assert!(json[0]["error"].is_null() && json[2]["error"].is_string());
    assert!(
        second
            .stderr
            .contains("2 mails: 0 sent, 1 deferred, 0 failed, 1 unknown")
    );
}

#[tokio::test]
async fn what_is_no_mail_is_told_for_what_it_is() {
    let setup = Setup::new().await;
    let cases: &[(&str, &[u8], &str, &str)] = &[
        ("empty.eml", b"", "empty", "it is empty"),
        (
            "text.eml",
            b"just some text\nof two lines\n",
            "not_a_mail",
            "not a mail",
        ),
        (
            "image.eml",
            b"\x89PNG\r\n\x1a\n\0\0\0",
            "not_a_mail",
            "not a mail",
        ),
        (
            "box.eml",
            b"From a@b.c Mon\nFrom: a@b.c\nTo: x@y.z\n\n",
            "not_a_mail",
            "mbox",
        ),
        (
            "sender.eml",
            b"To: a@example.net\n\nx",
            "no_sender",
            "give it a From",
        ),
        (
            "to.eml",
            b"From: a@example.com\nSubject: x\n\nx",
            "no_recipient",
            "no recipient",
        ),
        (
            "bad.eml",
            b"From: a@example.com\nTo: Bob\n\nx",
            "bad_address",
            "\"Bob\"",
        ),
        (
            "bad2.eml",
            b"From: a@\nTo: b@example.net\n\nx",
            "bad_address",
            "\"a@\"",
        ),
    ];
    for (name, content, _, _) in cases {
        setup.file(name, content);
    }
    std::fs::create_dir(setup.folder.path().join("folder.eml")).unwrap();
    std::os::unix::fs::symlink("loop.eml", setup.folder.path().join("loop.eml")).unwrap();
    setup.mail("good.eml");
    let files =
        cases
            .iter()
            .map(|(name, ..)| *name)
            .chain(["folder.eml", "loop.eml", "missing.eml", "good.eml"]);
    let run = setup.send(files.clone()).await;
    run.ends_with(1)
        .says("12 mails: 1 sent, 0 deferred, 11 failed, 0 unknown");
    let json = setup.send(std::iter::once("--json").chain(files)).await.json();
    let others: [(&str, &[u8], &str, &str); 3] = [
        ("folder.eml", b"", "unreadable", "a directory"),
        ("loop.eml", b"", "unreadable", "it cannot be read"),
        ("missing.eml", b"", "unreadable", "No such file"),
    ];
    for (name, _, reason, text) in cases.iter().chain(&others) {
        let line = run.line(name);
        assert!(
            line.starts_with(&format!("{name}: failed: ")) && line.contains(text),
            "{line}"
        );
        let object = json.iter().find(|object| object["file"] == *name).unwrap();
        assert_eq!(object["reason"], *reason, "{object}");
    }
    assert_eq!(setup.redis.connection().used(KEY), (2, 2));
}

#[tokio::test]
async fn a_mail_may_be_as_big_as_graph_takes_and_no_bigger() {
    let setup = Setup::new().await;
    let limit = 3 * 1024 * 1024;
    let mut content = mail("big").into_bytes();
    content.resize(limit, b'x');
    setup.file("fits.eml", &content);
    content.push(b'x');
    setup.file("big.eml", &content);
    let run = setup.send(["fits.eml", "big.eml", "/dev/zero"]).await;
    run.ends_with(1);
    assert!(run.line("fits.eml").contains("sent"));
    let line = run.line("big.eml");
    assert!(
        line.contains("too big (3145729 bytes)") && line.contains("4 MB"),
        "{line}"
    );
    assert!(run.line("/dev/zero").contains("too big"));
    let run = run_with_input(setup.command("send").arg("-"), &content[..]).await;
    run.ends_with(1).says("-: failed: it is too big");
    assert_eq!(setup.graph.report().mailbox(MAILBOX).accepted, 1);
    assert_eq!(setup.graph.report().mailbox(MAILBOX).rejected, 0);
    // None of them was reserved for.
    assert_eq!(setup.redis.connection().counter("mailrl", "mailrl_allowed"), 1);
}

#[tokio::test]
async fn a_file_that_is_named_twice_is_sent_once() {
    let setup = Setup::new().await;
    setup.mail("a.eml");
    std::os::unix::fs::symlink("a.eml", setup.folder.path().join("same.eml")).unwrap();
    let run = setup.send(["a.eml", "./a.eml", "same.eml"]).await;
    run.ends_with(0)
        .says("./a.eml: named twice, sent once")
        .says("1 mail: 1 sent");
    assert_eq!(setup.arrived(), ["a.eml"]);
}

#[tokio::test]
async fn a_mail_with_more_recipients_than_a_whole_day_fails_at_once() {
    let setup = Setup::with(["window", "rolling", "recipients-per-day", "100"], sim()).await;
    let file = samples().join("update-120-recipients.eml");
    let run = setup.send(["--wait".as_ref(), file.as_os_str()]).await;
    run.ends_with(1).says("will never fit");
    let run = setup.send(["--json".as_ref(), file.as_os_str()]).await;
    assert_eq!(run.json()[0]["reason"], "too_many_recipients");
    assert!(setup.arrived().is_empty());
}

#[tokio::test]
async fn a_name_cannot_steer_the_terminal() {
    let setup = Setup::new().await;
    let run = setup.send(["\u{1b}[2J.eml"]).await;
    run.ends_with(1).says("\\u{1b}[2J.eml: failed");
    assert!(!run.output().contains('\u{1b}'));
}
