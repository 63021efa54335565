//! The queue, when its Redis, the way to it or a producer does what nobody would ask for.

mod common;

use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bullmq::JobOptions;
use common::proxy::Proxy;
use common::queue::{Outbox, Setup, mail, quick_id, until};
use graph_sim::GraphSim;
use mailrl_mailer::MessageId;
use mailrl_mailer::MessageState::{Failed, Pending, Sent, Unknown};
use mailrl_mailer::queue::{JOB, MailJob, Record};
use serde_json::json;
use tempfile::TempDir;
use test_support::RedisServer;

const FROM: &str = "one@example.com";

struct System {
    setup: Setup,
    outbox: Outbox,
    graph: GraphSim,
    redis: RedisServer,
    _store: TempDir,
}

async fn system() -> System {
    let redis = RedisServer::with_module([]);
    let graph = common::sim().start().await;
    let store = tempfile::tempdir().unwrap();
    let setup = Setup::new(redis.url(), redis.url(), &graph, &store);
    System {
        outbox: setup.outbox().await,
        setup,
        graph,
        redis,
        _store: store,
    }
}

/// A job that holds its mail itself.
fn inline(id: &MessageId) -> MailJob {
    let mime = STANDARD.encode(mail(id, FROM, &["a@example.net"]));
    serde_json::from_value(json!({ "message_id": id, "mime": mime })).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_goes_on_at_the_new_primary_after_a_failover() {
    let mut system = system().await;
    let other = RedisServer::builder()
        .arguments(["--replicaof", &format!("127.0.0.1 {}", system.redis.port())])
        .start();
    let proxy = Proxy::to(system.redis.port()).await;
    system.setup.queue_url = proxy.url();
    system.setup.lock = Duration::from_secs(1);
    let _worker = system.setup.worker().await;
    let before = quick_id("before");
    system.outbox.enqueue(&before, FROM).await;
    system.outbox.record_in(&before, Sent).await;

    system.redis.wait_for_replica(&other);
    let follow = |server: &RedisServer, host: &str, port: &str| {
        let mut connection = server.connection();
        redis::cmd("REPLICAOF")
            .arg(&[host, port])
            .exec(&mut connection)
            .unwrap();
    };
    follow(&other, "NO", "ONE");
    // The connections that there are stay with the old one.
    proxy.turn_to(other.port());
    follow(&system.redis, "127.0.0.1", &other.port().to_string());
    let outbox = system.setup.outbox().await;
    let after = quick_id("after");
    outbox.enqueue(&after, FROM).await;
    outbox.record_in(&after, Sent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_had_again_soon_after_their_connection_went_silent() {
    let mut system = system().await;
    let proxy = Proxy::to(system.redis.port()).await;
    system.setup.queue_url = proxy.url();
    let outbox = system.setup.outbox().await;
    let id = quick_id("one");
    assert_eq!(outbox.records.load(&id).await.unwrap(), None);
    proxy.silence();
    let start = Instant::now();
    outbox.records.load(&id).await.unwrap_err();
    assert_eq!(outbox.records.load(&id).await.unwrap(), None);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_was_sent_is_not_sent_again_when_redis_has_lost_what_was_written_before() {
    let system = system().await;
    let _worker = system.setup.worker().await;
    for older in [None, Some(Pending)] {
        system.graph.set_latency(1_000..=1_000);
        let id = quick_id(&format!("older-{older:?}").to_lowercase().replace(['(', ')'], "-"));
        let job = system.outbox.job(&id, FROM).await;
        system.outbox.add(&job).await;
        system.outbox.record_when(&id, Record::is_announced).await;
        let key = format!("bull:send-scheduled-messages:message:{id}");
        redis::cmd("DEL")
            .arg(&key)
            .exec(&mut system.redis.connection())
            .unwrap();
        if older.is_some() {
            let record = Record::new(job, id.to_string(), FROM.into(), u64::MAX >> 12, 1);
            let written = system.outbox.records.compare_and_set(&id, 0, &record, 1);
            written.await.unwrap().unwrap();
        }
        system.outbox.record_in(&id, Sent).await;
        system.graph.set_latency(0..=0);
        let is_gone = async || system.outbox.queue.get_job(id.as_str()).await.unwrap().is_none();
        until("its job ends", Duration::from_secs(5), is_gone).await;
    }
    assert_eq!(system.graph.messages().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_producer_had_delayed_for_days_is_not_too_old_when_its_time_comes() {
    const DELAY: Duration = Duration::from_hours(72);
    let system = system().await;
    let _worker = system.setup.worker().await;
    let id = quick_id("later");
    let options = JobOptions::new()
        .delay(DELAY)
        .timestamp(SystemTime::now() - DELAY);
    let adding = system.outbox.queue.add(JOB, inline(&id)).options(options);
    adding.await.unwrap();
    let record = system
        .outbox
        .record_when(&id, |record| record.state.has_ended())
        .await;
    assert_eq!(record.state, Sent, "{record:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_mail_was_lost_with_its_job_ends_and_says_so() {
    let mut system = system().await;
    system.setup.sweep_every = Duration::from_millis(200);
    system.setup.overdue = Duration::from_millis(200);
    let [unsent, announced, kept] = ["unsent", "announced", "kept"].map(quick_id);
    for id in [&unsent, &announced, &kept] {
        let mut record = Record::new(
            inline(id).without_mime(),
            format!("job-of-{id}"),
            FROM.into(),
            0,
            0,
        );
        record.created_at = u64::MAX >> 12;
        record.claim("killed", 100, 1).unwrap();
        if id == &announced {
            record.announce("killed", 100).unwrap();
        }
        let written = system.outbox.records.compare_and_set(id, 0, &record, 1).await;
        written.unwrap().unwrap();
    }
    // One that waits for a day, though its message does not, still has its mail.
    let adding = system.outbox.queue.add(JOB, inline(&kept));
    let adding = adding
        .job_id(format!("job-of-{kept}"))
        .delay(Duration::from_hours(24));
    adding.await.unwrap();
    let worker = system.setup.worker().await;
    let record = system.outbox.record_in(&unsent, Failed).await;
    let reason = record.reason.unwrap();
    assert!(reason.contains("its mail was in job job-of-unsent"), "{reason}");
    system.outbox.record_in(&announced, Unknown).await;
    system.outbox.record_in(&kept, Sent).await;
    assert_eq!(worker.shutdown(Duration::from_secs(5)).await.sent, 1);
}
