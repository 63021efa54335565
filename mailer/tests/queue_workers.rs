//! Two worker processes on one queue: each mail goes out once, whatever happens to them and to Redis.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use common::queue::{Outbox, Setup, id_with_spread, until};
use graph_sim::Limits;
use lettre::address::Envelope;
use mailrl_mailer::MessageState::{Sent, Unknown};
use mailrl_mailer::queue::{Record, Summary};
use mailrl_mailer::{MessageId, MessageState};
use rand::RngExt as _;
use test_support::{Calls, RedisServer};
use tokio::process::Child;

const MAILS: usize = 500;

#[tokio::test]
#[ignore = "a worker's process, which the other tests start"]
async fn worker_process() {
    common::queue::worker_process().await;
}

/// Each mailbox has used up a part of its minute 55 s ago, so that the last of its mails have to
/// wait, and not for a minute: the limiter's Redis and Graph have clocks that can be moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_send_each_of_500_mails_once_and_meet_no_429() {
    const MAILBOXES: usize = 5;
    const USED: usize = 40;
    let started = Instant::now();
    let queue = RedisServer::builder().start();
    let module = ["window", "rolling", "per-minute", "100"];
    let limiter = RedisServer::builder().module(module).with_clock().start();
    let limits = Limits {
        messages: 105,
        ..Limits::default()
    };
    let graph = common::sim().limits(limits).latency(20..=80).start().await;
    let store = tempfile::tempdir().unwrap();
    let setup = Setup::new(queue.url(), limiter.url(), &graph, &store);
    let mailbox = |nth: usize| format!("box{}@example.com", nth % MAILBOXES);

    let outbox = setup.outbox().await;
    let ids: Vec<MessageId> = (0..MAILS)
        .map(|nth| format!("mail-{nth}").parse().unwrap())
        .collect();
    enqueue(&outbox, &ids, mailbox).await;

    let mailer = setup.mailer();
    for nth in 0..USED * MAILBOXES {
        let id: MessageId = format!("before-{nth}").parse().unwrap();
        let mail = common::queue::mail(&id, &mailbox(nth), &["a@example.net"]);
        let from = Some(mailbox(nth).parse().unwrap());
        let envelope = Envelope::new(from, vec!["a@example.net".parse().unwrap()]).unwrap();
        mailer.send_raw(&envelope, &mail).await.unwrap();
    }
    mailer.shutdown().await;
    limiter.move_clock_ms(55_000);
    graph.advance(Duration::from_secs(55));

    let log = store.path().join("workers.log");
    let workers = [setup.worker_process(&log), setup.worker_process(&log)];
    let all_sent = async || graph.messages().len() >= MAILS + USED * MAILBOXES;
    until("all is sent", Duration::from_secs(90), all_sent).await;
    until("all is settled", Duration::from_secs(10), async || {
        states(&outbox, &ids).await.get(&Sent) == Some(&MAILS)
    })
    .await;
    for worker in workers {
        stop(worker).await;
    }
    println!("{MAILS} mails in {:.1?}", started.elapsed());

    let subjects: Vec<_> = graph.messages().into_iter().map(|mail| mail.subject).collect();
    assert_eq!(subjects.len(), MAILS + USED * MAILBOXES);
    assert_eq!(subjects.iter().collect::<BTreeSet<_>>().len(), subjects.len());
    let report = graph.report();
    for (mailbox, seen) in &report.mailboxes {
        assert_eq!(seen.throttled(), 0, "{mailbox}: {report}");
    }
    let denied = limiter.connection().counter("mailrl", "mailrl_denied_minute");
    assert!(denied > 0, "nothing had to wait");
    let done = summaries(&log);
    println!("{done:?}; {denied} denied for the minute");
    assert_eq!(done.len(), 2, "both came to an orderly end");
    assert!(
        done.iter().all(|worker| worker.sent > 50),
        "both worked: {done:?}"
    );
    let sum = |count: fn(&Summary) -> u64| done.iter().map(count).sum::<u64>();
    assert_eq!(sum(|worker| worker.sent), MAILS as u64);
    assert_eq!(sum(|worker| worker.failed + worker.unknown + worker.retried), 0);
    assert_eq!(outbox.queue.get_failed_count().await.unwrap(), 0);
    assert_eq!(
        kept_mails(store.path()),
        0,
        "the store still holds mails that were sent"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_and_a_restarted_redis_lose_no_mail_and_send_none_twice() {
    const MAILBOXES: usize = 20;
    let started = Instant::now();
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let module = ["window", "rolling", "per-minute", "1000"];
    let mut redis = RedisServer::builder().arguments(durable).module(module).start();
    let graph = common::sim().latency(100..=700).start().await;
    let store = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(redis.url(), redis.url(), &graph, &store);
    setup.concurrency = 20;
    setup.claim_time = Duration::from_secs(5);
    setup.send_time = Duration::from_secs(5);
    // Until then a killed worker's sends stand in the way of those of the same mailbox.
    setup.lease = Duration::from_secs(5);
    setup.lock = Duration::from_secs(2);
    setup.stalled_check = Duration::from_secs(1);
    setup.sweep_every = Duration::from_secs(2);
    setup.overdue = Duration::from_secs(2);
    let outbox = setup.outbox().await;
    let ids: Vec<MessageId> = (0..MAILS)
        .map(|nth| id_with_spread(&format!("mail-{nth}"), Duration::from_secs(2)))
        .collect();
    enqueue(&outbox, &ids, |nth| format!("box{}@example.com", nth % MAILBOXES)).await;

    let log = store.path().join("workers.log");
    let mut workers = vec![setup.worker_process(&log), setup.worker_process(&log)];
    let some_are_sent = async || graph.messages().len() > 50;
    until("some are sent", Duration::from_secs(30), some_are_sent).await;
    tokio::time::sleep(Duration::from_millis(rand::rng().random_range(0..1_000))).await;
    let mut killed = workers.remove(0);
    killed.kill().await.unwrap();
    println!("killed a worker after {} mails", graph.messages().len());
    workers.push(setup.worker_process(&log));

    let half_are_sent = async || graph.messages().len() > MAILS / 2;
    until("half are sent", Duration::from_secs(30), half_are_sent).await;
    redis.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let sent_before = graph.messages().len();
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!(
        "Redis was down after {sent_before} mails, {} when it came back",
        graph.messages().len()
    );
    redis.restart();

    let all_settled = async || {
        let states = states(&outbox, &ids).await;
        states.get(&Sent).unwrap_or(&0) + states.get(&Unknown).unwrap_or(&0) == MAILS
    };
    until("all is settled", Duration::from_secs(90), all_settled).await;
    for worker in workers {
        stop(worker).await;
    }

    let subjects: Vec<_> = graph.messages().into_iter().map(|mail| mail.subject).collect();
    let arrived: BTreeSet<_> = subjects.iter().map(String::as_str).collect();
    assert_eq!(arrived.len(), subjects.len(), "a mail arrived twice");
    let (mut unknown, mut unknown_and_arrived) = (0, 0);
    for id in &ids {
        let record = outbox.record(id).await.unwrap();
        match record.state {
            Sent => assert!(arrived.contains(id.as_str()), "{id} never arrived: {record:?}"),
            Unknown => {
                unknown += 1;
                unknown_and_arrived += usize::from(arrived.contains(id.as_str()));
            }
            state => panic!("{id} is {state}"),
        }
    }
    println!(
        "{MAILS} mails in {:.1?}: {unknown} are UNKNOWN, of which {unknown_and_arrived} arrived; {:?}",
        started.elapsed(),
        summaries(&log)
    );
    // What the killed worker had in its hands, and no more.
    assert!(unknown <= setup.concurrency, "{unknown}");
}

async fn enqueue(outbox: &Outbox, ids: &[MessageId], mailbox: impl Fn(usize) -> String) {
    for (nth, id) in ids.iter().enumerate() {
        outbox.enqueue(id, &mailbox(nth)).await;
    }
}

/// How many messages are in which state.
async fn states(outbox: &Outbox, ids: &[MessageId]) -> BTreeMap<MessageState, usize> {
    let mut states = BTreeMap::new();
    for id in ids {
        // Redis may be away.
        if let Ok(Some(found)) = outbox.records.load(id).await {
            let Record { state, .. } = found.record;
            *states.entry(state).or_default() += 1;
        }
    }
    states
}

/// Ends a worker as Kubernetes would.
async fn stop(mut worker: Child) {
    let pid = i32::try_from(worker.id().unwrap()).unwrap();
    // SAFETY: kill(2) takes no pointers, and the process is a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    let ended = tokio::time::timeout(Duration::from_secs(15), worker.wait());
    assert!(ended.await.expect("it ends").unwrap().success());
}

fn summaries(log: &Path) -> Vec<Summary> {
    let log = std::fs::read_to_string(log).unwrap();
    log.lines()
        .filter_map(|line| line.strip_prefix("summary "))
        .map(|summary| serde_json::from_str(summary).unwrap())
        .collect()
}

fn kept_mails(store: &Path) -> usize {
    store.join("messages").read_dir().unwrap().count()
}
