//! Which mailer the factory has for whom, and what a changed configuration changes.

mod common;
#[path = "common/configured.rs"]
mod configured;

use std::sync::Arc;
use std::time::Duration;

use common::{MAILBOX, SECRET, eventually, mail};
use configured::{PASSWORD, Setup};
use lettre::address::Envelope;
use mailrl_client::{DenialReason, MailRateLimitExceeded, Mailbox};
use mailrl_mailer::config::MailConfig;
use mailrl_mailer::factory::{FactoryError, Mailers, events};
use mailrl_mailer::write_ahead::{NotRecorded, scope};
use mailrl_mailer::{Mailer, MailerError, MailerFactory, Sender};
use test_support::{Calls, CapturedLog, RedisServer};

fn of(factory: &MailerFactory, mailbox: &str) -> Mailer {
    factory
        .get_mailer_for_system_mailbox(&Mailbox::new(mailbox))
        .unwrap()
}

fn envelope(from: &str) -> Envelope {
    Envelope::new(
        Some(from.parse().unwrap()),
        vec!["a@example.net".parse().unwrap()],
    )
    .unwrap()
}

async fn send(mailer: &Mailer, from: &str) -> Result<(), MailerError> {
    mailer.send_raw(&envelope(from), &mail("Hello")).await
}

fn is_denied(sent: &Result<(), MailerError>) -> bool {
    matches!(
        sent,
        Err(MailerError::Exceeded(MailRateLimitExceeded {
            reason: DenialReason::Minute,
            ..
        }))
    )
}

fn limit(mailbox: &str, per_minute: u32) -> String {
    format!("[mailbox.'{mailbox}']\nrate_limit_per_minute = {per_minute}\n")
}

/// Waits for as long as the watch takes to notice something, and a little.
async fn two_looks() {
    tokio::time::sleep(Duration::from_millis(1_300)).await;
}

#[tokio::test]
async fn a_changed_limit_gives_its_mailbox_another_mailer_and_nobody_another_token() {
    let setup = Setup::new().await;
    let rest = limit("b@example.com", 20) + &setup.tenant("acme");
    let factory = setup.factory(&(limit("a@example.com", 10) + &rest));
    let all = || {
        [
            of(&factory, "a@example.com"),
            of(&factory, "b@example.com"),
            of(&factory, "other@example.com"),
            factory.get_mailer("acme").unwrap(),
        ]
    };
    let before = all();
    for (mailer, again) in before.iter().zip(&all()) {
        assert!(Arc::ptr_eq(mailer, again));
        send(mailer, MAILBOX).await.unwrap();
    }
    setup.write(&(limit("a@example.com", 11) + &rest));
    eventually("another mailer", || {
        !Arc::ptr_eq(&of(&factory, "a@example.com"), &before[0])
    })
    .await;
    let after = all();
    for (old, new) in before.iter().zip(&after).skip(1) {
        assert!(Arc::ptr_eq(old, new));
    }
    send(&after[0], MAILBOX).await.unwrap();
    assert_eq!(setup.graph.messages().len(), 5);
    assert_eq!(setup.graph.report().token_requests, 1);
}

#[tokio::test]
async fn the_next_mail_of_a_mailbox_runs_under_its_new_limit_and_others_under_theirs() {
    let redis = RedisServer::with_module(["window", "rolling"]);
    let setup = Setup::with(redis.url()).await;
    let (a, b) = ("a@example.com", "b@example.com");
    let factory = setup.factory(&(limit(a, 1) + &limit(b, 2)));
    for (mailbox, limit) in [(a, 1), (b, 2)] {
        for _ in 0..limit {
            send(&of(&factory, mailbox), mailbox).await.unwrap();
        }
        assert!(is_denied(&send(&of(&factory, mailbox), mailbox).await));
    }
    let old = of(&factory, a);
    setup.write(&(limit(a, 3) + &limit(b, 2)));
    eventually("another mailer", || !Arc::ptr_eq(&of(&factory, a), &old)).await;
    for _ in 0..2 {
        send(&of(&factory, a), a).await.unwrap();
    }
    for mailbox in [a, b] {
        assert!(is_denied(&send(&of(&factory, mailbox), mailbox).await));
    }
    assert_eq!(factory.limiter().counts().fail_open, 0);
}

#[tokio::test]
async fn a_tenant_runs_on_the_default_limits_whatever_is_said_of_its_mailbox() {
    let redis = RedisServer::with_module(["window", "rolling"]);
    let setup = Setup::with(redis.url()).await;
    let limits = format!("[limits]\nrate_limit_per_minute = 3\n{}", limit(MAILBOX, 1));
    let factory = setup.factory(&(limits + &setup.tenant("acme")));
    let tenant = factory.get_mailer("acme").unwrap();
    for _ in 0..3 {
        send(&tenant, MAILBOX).await.unwrap();
    }
    assert!(is_denied(&send(&tenant, MAILBOX).await));

    let sender = Sender::Tenant("acme".into());
    let by_sender = factory.mailer_for(&sender, &envelope(MAILBOX)).unwrap();
    assert!(Arc::ptr_eq(&by_sender, &tenant));
    let by_sender = factory
        .mailer_for(&Sender::SystemMailbox, &envelope(MAILBOX))
        .unwrap();
    assert!(Arc::ptr_eq(&by_sender, &of(&factory, MAILBOX)));
    let nobody = Envelope::new(None, vec!["a@example.net".parse().unwrap()]).unwrap();
    let error = factory.mailer_for(&Sender::SystemMailbox, &nobody).err().unwrap();
    assert!(matches!(error, FactoryError::Unknown(_)), "{error}");
}

#[tokio::test]
async fn mailboxes_that_are_not_listed_share_a_mailer_and_what_is_not_mentioned_any_more_is_dropped() {
    let setup = Setup::new().await;
    let factory = setup.factory(&limit("a@example.com", 10));
    let shared = of(&factory, "x@example.com");
    assert!(Arc::ptr_eq(&shared, &of(&factory, "y@example.com")));
    let listed = Arc::downgrade(&of(&factory, "a@example.com"));
    assert!(listed.upgrade().is_some());
    setup.write("");
    eventually("its mailer is dropped", || listed.upgrade().is_none()).await;
    assert!(Arc::ptr_eq(&shared, &of(&factory, "a@example.com")));
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told_once_with_its_line() {
    let log = CapturedLog::start();
    let setup = Setup::new().await;
    let factory = setup.factory(&limit(MAILBOX, 10));
    let before = of(&factory, MAILBOX);
    let path = setup.write("[mailbox.'x@example.com']\nrate_limit = 3\n");
    eventually("it is told", || !log.of(events::INVALID).is_empty()).await;
    two_looks().await;
    let told = log.of(events::INVALID);
    assert_eq!((told.len(), &*told[0].0), (1, "ERROR"));
    let line = std::fs::read_to_string(&path).unwrap().lines().count();
    let error = told[0].1["error"].as_str().unwrap();
    assert!(
        error.contains(&format!("mailrl.toml, line {line}: unknown key `rate_limit`")),
        "{error}"
    );
    assert!(Arc::ptr_eq(&of(&factory, MAILBOX), &before));

    std::fs::remove_file(&path).unwrap();
    eventually("it is told", || log.of(events::INVALID).len() == 2).await;
    assert!(log.text().contains("cannot be read"));
    assert!(Arc::ptr_eq(&of(&factory, MAILBOX), &before));
    assert!(log.of(events::CHANGED).is_empty());

    setup.write(&(limit(MAILBOX, 11) + &setup.tenant("acme")));
    eventually("it is mended", || log.of(events::CHANGED).len() == 1).await;
    let (level, told) = &log.of(events::CHANGED)[0];
    assert_eq!((&**level, &told["tenants"]), ("INFO", &"acme".into()));
    assert_eq!(told["mailboxes"], MAILBOX);
    assert!(!Arc::ptr_eq(&of(&factory, MAILBOX), &before));
}

#[tokio::test]
async fn a_config_map_that_kubernetes_swaps_is_noticed() {
    let setup = Setup::new().await;
    let path = setup.write("");
    let folder = setup.folder.path();
    for (version, more) in [("v1", limit(MAILBOX, 10)), ("v2", limit(MAILBOX, 11))] {
        std::fs::create_dir(folder.join(version)).unwrap();
        setup.write(&more);
        std::fs::rename(&path, folder.join(version).join("mailrl.toml")).unwrap();
    }
    std::os::unix::fs::symlink("v1", folder.join("..data")).unwrap();
    std::os::unix::fs::symlink("..data/mailrl.toml", &path).unwrap();
    let factory = MailerFactory::watch(move || MailConfig::read(&path)).unwrap();
    let before = of(&factory, MAILBOX);
    std::os::unix::fs::symlink("v2", folder.join("..new")).unwrap();
    std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    eventually("another mailer", || !Arc::ptr_eq(&of(&factory, MAILBOX), &before)).await;
}

#[tokio::test]
async fn what_holds_from_the_next_start_on_is_told_once() {
    let log = CapturedLog::start();
    let setup = Setup::new().await;
    let factory = setup.factory("");
    let before = of(&factory, MAILBOX);
    let changed = "[queue]\nprefix = 'other'\n[store]\nurl = 'file:///mails'\n[limits]\nconcurrent = 2\n";
    setup.write(changed);
    eventually("it is told", || !log.of(events::RESTART_NEEDED).is_empty()).await;
    setup.write(&format!("{changed}{}", limit("a@example.com", 1)));
    eventually("the mailbox", || log.of(events::CHANGED).len() == 2).await;
    let told = log.of(events::RESTART_NEEDED);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1["changed"], "queue, store, limits.concurrent");
    assert!(Arc::ptr_eq(&of(&factory, MAILBOX), &before));
}

#[tokio::test]
async fn without_its_secret_a_senders_mail_waits_and_a_new_secret_is_taken_up() {
    let log = CapturedLog::start();
    let setup = Setup::new().await;
    let tenant = setup.tenant("acme").replace("'secret'", "'of-acme'");
    let factory = setup.factory(&tenant);
    let unusable = |factory: &MailerFactory| match factory.get_mailer("acme") {
        Err(FactoryError::Unusable(error)) => error.contains("[tenant.acme]") && error.contains("of-acme"),
        _ => false,
    };
    assert!(unusable(&factory));
    let told = log.of(events::UNUSABLE);
    let error = told[0].1["error"].as_str().unwrap();
    assert!(error.contains("[tenant.acme]"), "{error}");

    setup.file("of-acme", "a-wrong-one");
    eventually("there is a mailer", || factory.get_mailer("acme").is_ok()).await;
    let error = send(&factory.get_mailer("acme").unwrap(), MAILBOX)
        .await
        .unwrap_err();
    assert!(matches!(error, MailerError::NotSent(_)), "{error:?}");

    let old = factory.get_mailer("acme").unwrap();
    setup.file("of-acme", SECRET);
    eventually("another mailer", || {
        !Arc::ptr_eq(&factory.get_mailer("acme").unwrap(), &old)
    })
    .await;
    send(&factory.get_mailer("acme").unwrap(), MAILBOX).await.unwrap();

    std::fs::remove_file(setup.folder.path().join("of-acme")).unwrap();
    eventually("it is missed", || unusable(&factory)).await;
    assert_eq!(log.of(events::UNUSABLE).len(), 2);
    // The others were never concerned.
    send(&of(&factory, MAILBOX), MAILBOX).await.unwrap();
}

#[tokio::test]
async fn an_unknown_tenant_is_told_what_there_is_and_what_to_do() {
    let setup = Setup::new().await;
    let factory = setup.factory(&(setup.tenant("acme") + &setup.tenant("globex")));
    let error = factory.get_mailer("acne").err().unwrap();
    assert!(matches!(error, FactoryError::Unknown(_)), "{error:?}");
    for text in ["\"acne\"", "[tenant.NAME]", "acme, globex"] {
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test]
async fn without_an_account_mail_of_our_own_mailboxes_waits() {
    let path = tempfile::tempdir().unwrap().path().join("none");
    let factory = MailerFactory::watch(|| Ok(MailConfig::default())).unwrap();
    let error = factory
        .get_mailer_for_system_mailbox(&Mailbox::new(MAILBOX))
        .err()
        .unwrap();
    assert!(matches!(error, FactoryError::Unusable(_)), "{error:?}");
    assert!(
        error.to_string().contains("[graph]") && error.to_string().contains("set tenant"),
        "{error}"
    );
    let error = MailerFactory::watch(move || MailConfig::read(&path)).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[tokio::test]
async fn a_mail_whose_record_cannot_be_written_is_not_sent_and_costs_no_budget() {
    let redis = RedisServer::with_module(["window", "rolling"]);
    let setup = Setup::with(redis.url()).await;
    let factory = setup.factory("");
    let mailer = of(&factory, MAILBOX);
    let refuse = Arc::new(|| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(async { Err(NotRecorded("no Redis".into())) })
    });
    let error = scope(refuse, send(&mailer, MAILBOX)).await.unwrap_err();
    assert!(matches!(error, MailerError::NotTried(_)), "{error:?}");
    assert!(setup.graph.messages().is_empty());
    mailer.shutdown().await;
    assert_eq!(redis.connection().used(Mailbox::new(MAILBOX).key()), (0, 0));
}

#[tokio::test]
async fn the_watch_ends_with_the_last_of_the_factory() {
    let alive = Arc::new(());
    let watched = alive.clone();
    let factory = MailerFactory::watch(move || {
        let _ = &watched;
        Ok(MailConfig::default())
    })
    .unwrap();
    let clone = factory.clone();
    drop(factory);
    two_looks().await;
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(clone);
    eventually("nobody looks any more", || Arc::strong_count(&alive) == 1).await;
}

#[tokio::test]
async fn no_secret_and_no_address_of_redis_is_ever_shown() {
    let log = CapturedLog::start();
    let setup = Setup::new().await;
    let factory = setup.factory(&setup.tenant("acme"));
    send(&of(&factory, MAILBOX), MAILBOX).await.unwrap();
    send(&factory.get_mailer("acme").unwrap(), MAILBOX).await.unwrap();

    for (told, text) in [
        format!("[redis]\nurl = 'redis://u:{PASSWORD}@h\n"),
        format!("redis = 'redis://u:{PASSWORD}@h'\n"),
        format!("[graph]\ngraph_url = 'ftp://u:{PASSWORD}@h'\n"),
        format!("[graph]\nclient_secret = '{SECRET}'\n"),
    ]
    .into_iter()
    .enumerate()
    {
        setup.file("mailrl.toml", &text);
        eventually("it is told", || log.of(events::INVALID).len() > told).await;
    }
    // The secret where the name of a variable should be.
    let wrong = setup
        .tenant("acme")
        .replace("client_secret_file = 'secret'", "client_secret_env = 'SECRET'");
    setup.write(&wrong.replace("'SECRET'", &format!("'{SECRET}'")));
    eventually("it is told", || !log.of(events::UNUSABLE).is_empty()).await;
    let unusable = factory.get_mailer("acme").err().unwrap();
    let error = MailerFactory::watch(|| {
        Ok(MailConfig {
            redis: mailrl_mailer::config::Redis {
                url: Some(format!("redis://u:{PASSWORD}@h:port")),
                deadline_ms: None,
            },
            ..MailConfig::default()
        })
    })
    .unwrap_err();
    let shown = format!("{factory:?} {unusable:?} {error:?} {error} {}", log.text());
    // The last is how the simulator's access tokens begin.
    for secret in [SECRET, PASSWORD, "sim."] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
