//! The example in Node against real servers: its own tests, and what it and Rust see of each other
//! in one queue.

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bullmq::options::RedisConnectionOptions;
use bullmq::{Queue, QueueOptions};
use common::MAILBOX;
use common::queue::{Setup, until};
use graph_sim::GraphSim;
use mailrl_mailer::queue::{MailJob, QUEUE};
use test_support::RedisServer;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Time in which npm has fetched the packages from a registry that is slow.
const PATIENCE: Duration = Duration::from_mins(5);

#[tokio::test]
async fn the_examples_own_tests_pass() {
    let redis = RedisServer::with_module(["window", "rolling"]);
    let graph = GraphSim::builder().start().await;
    let mut tests = npm(&["test"]);
    tests
        .env("MAILRL_REDIS", redis.url())
        .env("MAILRL_GRAPH_URL", graph.base_url());
    build().await;
    succeed(tests).await;
}

#[tokio::test]
async fn what_the_node_producer_queues_is_a_job_for_the_rust_worker() {
    let redis = RedisServer::builder().start();
    let mail = sample("invoice-attachment.eml");
    node(&redis, "producer", &["--tenant", "contoso", &mail]).await;

    let queue = queue(&redis).await;
    let jobs = queue.get_waiting(0, -1).await.unwrap();
    let [job] = jobs.as_slice() else {
        panic!("{} jobs", jobs.len());
    };
    let data: MailJob = serde_json::from_value(job.data().clone()).unwrap();
    assert_eq!(job.id(), data.message_id.as_str());
    assert_eq!(data.tenant.as_deref(), Some("contoso"));
    assert!(data.created_at.is_some_and(|at| at.abs_diff(now_ms()) < 60_000));
    let mime = BASE64_STANDARD.decode(data.mime.unwrap()).unwrap();
    assert_eq!(mime, std::fs::read(mail).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_worker_sends_what_node_queued_and_node_sees_what_has_to_wait() {
    let redis = RedisServer::with_module(["window", "rolling", "per-minute", "2"]);
    let graph = common::sim().start().await;
    let store = tempfile::tempdir().unwrap();
    let setup = Setup::new(redis.url(), redis.url(), &graph, &store);
    let worker = setup.worker().await;
    let mails = ["--count", "5", "--from", MAILBOX, "--to", "a@example.net"];
    node(&redis, "producer", &mails).await;

    let queue = queue(&redis).await;
    until("two are sent, three wait", Duration::from_secs(30), async || {
        graph.messages().len() == 2 && queue.get_delayed_count().await.unwrap() == 3
    })
    .await;
    let shown = node(&redis, "waiting", &[]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("0 waiting, 0 active, 3 delayed, 0 failed"),
        "{shown}"
    );
    let outbox = setup.outbox().await;
    for job in queue.get_delayed(0, -1).await.unwrap() {
        let record = outbox.record(&job.id().parse().unwrap()).await.unwrap();
        let due = UNIX_EPOCH + Duration::from_millis(record.scheduled_on.unwrap());
        let date = httpdate::fmt_http_date(due);
        let clock = date.split(' ').nth(4).unwrap();
        let is_shown = |line: &str| line.contains(clock) && line.ends_with(job.id());
        assert!(shown.lines().any(is_shown), "{} at {clock}: {shown}", job.id());
    }
    assert_eq!(worker.shutdown(Duration::from_secs(5)).await.sent, 2);
}

/// Installs and compiles the example, once for all tests here.
async fn build() {
    static BUILT: OnceCell<()> = OnceCell::const_new();
    BUILT
        .get_or_init(|| async {
            succeed(npm(&["ci", "--no-progress"])).await;
            succeed(npm(&["run", "build"])).await;
        })
        .await;
}

/// Runs one of the example's programs.
async fn node(redis: &RedisServer, program: &str, arguments: &[&str]) -> Output {
    build().await;
    let mut command = Command::new("node");
    command
        .arg(example().join(format!("dist/{program}.js")))
        .args(arguments)
        .env("MAILRL_REDIS", redis.url());
    succeed(command).await
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(example());
    command
}

/// Waits for the end of a command, and shows what it printed if it failed.
async fn succeed(mut command: Command) -> Output {
    let name = format!("{:?}", command.as_std());
    let ended = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
    let output = ended
        .unwrap_or_else(|_| panic!("{name} takes longer than {PATIENCE:?}"))
        .unwrap_or_else(|error| panic!("{name}: {error} (`make setup` installs it)"));
    assert!(
        output.status.success(),
        "{name} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

async fn queue(redis: &RedisServer) -> Queue {
    let options = QueueOptions::new().connection(connection(redis));
    Queue::with_options(QUEUE, options).await.unwrap()
}

fn connection(redis: &RedisServer) -> RedisConnectionOptions {
    RedisConnectionOptions::new().url(redis.url())
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/node")
}

fn sample(name: &str) -> String {
    format!("{}/../tests/mail/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_millis().try_into().unwrap()
}
