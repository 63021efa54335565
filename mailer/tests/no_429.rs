//! Two processes that send from the same mailboxes, to a Graph that takes its time, meet no 429.

mod common;

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::SECRET;
use graph_sim::{GraphSim, Limits};
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::{MailRateLimiter, RateLimitedGraphMailer, RateLimiterConfig};
use mailrl_mailer::MicrosoftGraphMailer;
use test_support::{Calls, RedisServer};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

const PROCESSES: usize = 2;
const TASKS: usize = 24;
const MAILBOXES: usize = 8;
const MAILS: usize = 800;
/// Per mailbox. Three sends at once that take 1.55 s on average are 50 in 26 s, so that the second
/// half of the mails has to wait for the minute.
const PER_MINUTE: &str = "50";
/// In the proportion of Microsoft's 30 to the module's 25.
const GRAPH_PER_MINUTE: u64 = 60;

/// What a sender's process is told: its number, Redis and Graph.
const SENDER: &str = "MAILRL_TEST_SENDER";
const NAME: &str = "two_processes_and_a_slow_graph_meet_no_429_and_send_each_mail_once";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_and_a_slow_graph_meet_no_429_and_send_each_mail_once() {
    // This process may be one of the senders that the test starts.
    if let Ok(job) = std::env::var(SENDER) {
        let job: Vec<_> = job.split(' ').collect();
        send_share(job[0].parse().unwrap(), job[1], job[2]).await;
        return;
    }
    let redis = RedisServer::with_module(["window", "rolling", "per-minute", PER_MINUTE]);
    let limits = Limits {
        messages: GRAPH_PER_MINUTE,
        ..Limits::default()
    };
    let graph = GraphSim::builder()
        .client("app", SECRET)
        .limits(limits)
        .latency(100..=3_000)
        .start()
        .await;
    let start = Instant::now();
    let senders: Vec<_> = (0..PROCESSES)
        .map(|nth| sender(&format!("{nth} {} {}", redis.url(), graph.base_url())))
        .collect();
    for sender in senders {
        let ending = tokio::time::timeout(Duration::from_secs(150), sender.wait_with_output());
        let output = ending.await.expect("it comes to an end").unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let took = start.elapsed();

    let report = graph.report();
    println!("{MAILS} mails in {took:.1?}\n{report}");
    let subjects: Vec<_> = graph.messages().into_iter().map(|mail| mail.subject).collect();
    assert_eq!(subjects.len(), MAILS);
    assert_eq!(subjects.iter().collect::<BTreeSet<_>>().len(), MAILS);
    assert_eq!(report.mailboxes.len(), MAILBOXES);
    for (mailbox, seen) in &report.mailboxes {
        assert_eq!(seen.throttled(), 0, "{mailbox}: {report}");
        assert_eq!(seen.most_messages.to_string(), PER_MINUTE, "{mailbox}: {report}");
    }
    let mut redis = redis.connection();
    let mut counter = |name: &str| redis.counter("mailrl", &format!("mailrl_{name}"));
    let [minute, concurrent, paused, calls] =
        ["denied_minute", "denied_concurrent", "denied_paused", "allowed"].map(&mut counter);
    println!("denied: minute {minute}, concurrent {concurrent}, paused {paused}; allowed {calls}");
    assert!(minute > 0 && concurrent > 0, "neither limit was met");
    assert_eq!((paused, calls), (0, MAILS as u64));
}

/// A process of its own that runs this test as a sender.
fn sender(job: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(SENDER, job)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Sends every mail of this process's share, each when it may.
async fn send_share(process: usize, redis: &str, graph: &str) {
    // A machine that is busy with other tests is not what is tested here.
    let config = RateLimiterConfig::new(redis).deadline(Duration::from_secs(5));
    let limiter = MailRateLimiter::new(config.concurrent(Some(3))).unwrap();
    let inner = common::builder(graph, graph).build().unwrap();
    let mailer = Arc::new(RateLimitedGraphMailer::new(inner, limiter));
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (mailer, next) = (mailer.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= MAILS / PROCESSES {
                    return;
                }
                send_in_time(&mailer, process, nth).await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    mailer.shutdown().await;
    assert_eq!(
        mailer.limiter().counts().fail_open,
        0,
        "mail went out without the brake"
    );
}

async fn send_in_time(mailer: &RateLimitedGraphMailer<MicrosoftGraphMailer>, process: usize, nth: usize) {
    let mailbox = format!("box{}@example.com", nth % MAILBOXES);
    let content =
        format!("From: {mailbox}\r\nTo: a@example.net\r\nSubject: {process}-{nth}\r\n\r\nHello.\r\n");
    let to = vec!["a@example.net".parse().unwrap()];
    let envelope = Envelope::new(Some(mailbox.parse().unwrap()), to).unwrap();
    while let Err(error) = mailer.send_raw(&envelope, content.as_bytes()).await {
        let wait = error
            .exceeded()
            .unwrap_or_else(|| panic!("{process}-{nth}: {error}"))
            .retry_after;
        tokio::time::sleep(wait).await;
    }
}
