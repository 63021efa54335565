//! What the queue does so that no message is lost: the sweep, the orderly end, panics.

mod common;

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::queue::{OneMailer, Outbox, Setup, mail, quick_id, until};
use graph_sim::{Fault, GraphSim};
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::RateLimitedGraphMailer;
use mailrl_mailer::MessageState::{Failed, Scheduled, Sent, Unknown};
use mailrl_mailer::queue::{Decision, Record};
use mailrl_mailer::write_ahead::WriteAhead;
use mailrl_mailer::{AnyMailer, MailerError, MessageId};
use tempfile::TempDir;
use test_support::RedisServer;

const FROM: &str = "one@example.com";

struct System {
    setup: Setup,
    outbox: Outbox,
    graph: GraphSim,
    store: TempDir,
    _redis: RedisServer,
}

/// A system that looks for lost messages all the time.
async fn system() -> System {
    let redis = RedisServer::with_module([]);
    let graph = common::sim().start().await;
    let store = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(redis.url(), redis.url(), &graph, &store);
    setup.sweep_every = Duration::from_millis(200);
    setup.overdue = Duration::from_millis(200);
    System {
        outbox: setup.outbox().await,
        setup,
        graph,
        store,
        _redis: redis,
    }
}

impl System {
    /// Has a message put off for half a second, and its job removed meanwhile.
    async fn lose(&self, id: &MessageId) {
        let job_id = self.outbox.record_in(id, Scheduled).await.job_id;
        let remove = async || {
            // A job cannot be removed while its worker still holds it.
            self.outbox.queue.get_job_state(&job_id).await.unwrap() != bullmq::types::JobState::Active
                && self.outbox.queue.remove(&job_id).await.unwrap()
        };
        until("the job is removed", Duration::from_secs(5), remove).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_job_was_lost_is_sent_all_the_same() {
    let mut system = system().await;
    system.setup.first_pause = Duration::from_millis(500);
    let _worker = system.setup.worker().await;
    system.graph.inject(Fault::answer(500).times(2));
    let [kept, inline] = ["kept", "inline"].map(quick_id);
    system.outbox.enqueue(&kept, FROM).await;
    system.lose(&kept).await;
    // A mail that stood only in a job, which BullMQ gave a number, is not lost with it.
    let mime = STANDARD.encode(mail(&inline, FROM, &["a@example.net"]));
    let job = serde_json::json!({ "message_id": inline, "mime": mime });
    system.outbox.queue.add("mail", job).await.unwrap();
    system.lose(&inline).await;
    for id in [kept, inline] {
        system.outbox.record_in(&id, Sent).await;
    }
    let mut subjects: Vec<_> = system
        .graph
        .messages()
        .into_iter()
        .map(|mail| mail.subject)
        .collect();
    subjects.sort();
    assert_eq!(subjects.len(), 2, "{subjects:?}");
    let is_empty = async || {
        system
            .store
            .path()
            .join("messages")
            .read_dir()
            .unwrap()
            .next()
            .is_none()
    };
    until("the mails are deleted", Duration::from_secs(5), is_empty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_messages_than_a_page_that_the_queue_lost_are_all_sent() {
    const LOST: usize = 450;
    let system = system().await;
    for nth in 0..LOST {
        let id: MessageId = format!("lost-{nth}").parse().unwrap();
        let job = system.outbox.job(&id, &format!("box{nth}@example.com")).await;
        let created_at = u64::MAX >> 12;
        let record = Record::new(job, id.to_string(), String::new(), created_at, 0);
        let written = system.outbox.records.compare_and_set(&id, 0, &record, 0).await;
        written.unwrap().unwrap();
    }
    let _worker = system.setup.worker().await;
    let all_sent = async || system.graph.messages().len() == LOST;
    until("all are sent", Duration::from_mins(1), all_sent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_worker_and_job_are_gone_becomes_unknown_once_it_was_announced() {
    let system = system().await;
    let id = quick_id("claimed");
    let job = system.outbox.job(&id, FROM).await;
    let mut record = Record::new(job, id.to_string(), FROM.into(), 0, 0);
    record.claim("a worker that was killed", 100, 1).unwrap();
    record.announce("a worker that was killed", 200).unwrap();
    let written = system.outbox.records.compare_and_set(&id, 0, &record, 1).await;
    written.unwrap().unwrap();
    let _worker = system.setup.worker().await;
    system.outbox.record_in(&id, Unknown).await;
    assert_eq!(system.graph.messages().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_stood_in_its_job_can_still_be_sent_once_a_person_says_so() {
    let system = system().await;
    let _worker = system.setup.worker().await;
    system.graph.inject(Fault::answer(504));
    let id = quick_id("inline");
    let mime = STANDARD.encode(mail(&id, FROM, &["a@example.net"]));
    let job = serde_json::json!({ "message_id": id, "mime": mime });
    system.outbox.add(&serde_json::from_value(job).unwrap()).await;
    let record = system.outbox.record_in(&id, Unknown).await;
    system
        .outbox
        .mails
        .get(&record.job.mime_path.unwrap())
        .await
        .unwrap();

    let mut found = system.outbox.records.load(&id).await.unwrap().unwrap();
    let now = found.record.history.last().unwrap().at;
    found.record.decide(Decision::Send, "a person", now).unwrap();
    let written = system
        .outbox
        .records
        .compare_and_set(&id, found.version, &found.record, now);
    written.await.unwrap().unwrap();
    // The sweep finds it: its old job has failed.
    system.outbox.record_in(&id, Sent).await;
    assert_eq!(system.graph.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_mail_without_a_record_is_deleted_and_no_other() {
    let system = system().await;
    let [old, new, waiting] = ["old", "new", "waiting"].map(|id| id.parse::<MessageId>().unwrap());
    let mut paths = Vec::new();
    for id in [&old, &new, &waiting] {
        let job = system.outbox.job(id, FROM).await;
        paths.push(job.mime_path.clone().unwrap());
        if *id == waiting {
            let later = u64::MAX >> 12;
            let mut record = Record::new(job, id.to_string(), FROM.into(), 0, later);
            record.scheduled_on = Some(later);
            let written = system.outbox.records.compare_and_set(id, 0, &record, 0).await;
            written.unwrap().unwrap();
        }
    }
    for nth in [0, 2] {
        let file = File::options()
            .write(true)
            .open(system.store.path().join(&paths[nth]))
            .unwrap();
        let days = Duration::from_hours(24) * 10;
        file.set_modified(SystemTime::now() - days).unwrap();
    }
    let _worker = system.setup.worker().await;
    let is_gone = async || system.outbox.mails.get(&paths[0]).await.is_err();
    until("the old mail is deleted", Duration::from_secs(10), is_gone).await;
    system.outbox.mails.get(&paths[1]).await.unwrap();
    system.outbox.mails.get(&paths[2]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_told_to_end_finishes_what_it_has_begun_and_begins_no_more() {
    let mut system = system().await;
    system.setup.concurrency = 5;
    system.graph.set_latency(1_000..=1_000);
    let worker = system.setup.worker().await;
    let ids: Vec<MessageId> = (0..20)
        .map(|nth| format!("mail-{nth}").parse().unwrap())
        .collect();
    for (nth, id) in ids.iter().enumerate() {
        system.outbox.enqueue(id, &format!("box{nth}@example.com")).await;
    }
    let all_busy = async || system.outbox.queue.get_active_count().await.unwrap() == 5;
    until("it has its hands full", Duration::from_secs(10), all_busy).await;
    let summary = worker.shutdown(Duration::from_secs(10)).await;
    assert_eq!(system.graph.messages().len(), 5);
    assert_eq!(summary.sent, 5);
    assert_eq!(system.outbox.queue.get_active_count().await.unwrap(), 0);
    assert_eq!(system.outbox.queue.get_waiting_count().await.unwrap(), 15);
    let mut sent = 0;
    for id in &ids {
        sent += system
            .outbox
            .record(id)
            .await
            .map_or(0, |record| u64::from(record.state == Sent));
    }
    assert_eq!(sent, 5, "what was sent is also settled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_does_not_end_in_time_leaves_its_messages_to_the_others() {
    let mut system = system().await;
    system.setup.lock = Duration::from_secs(1);
    system.setup.stalled_check = Duration::from_millis(500);
    system.setup.send_time = Duration::from_secs(1);
    system.graph.inject(Fault::hang());
    let worker = system.setup.worker().await;
    let id = quick_id("stuck");
    system.outbox.enqueue(&id, FROM).await;
    let is_announced = |record: &Record| record.claim.as_ref().is_some_and(|claim| claim.announced);
    system.outbox.record_when(&id, is_announced).await;
    let started = std::time::Instant::now();
    worker.shutdown(Duration::from_millis(300)).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    let _other = system.setup.worker().await;
    system.outbox.record_in(&id, Unknown).await;
    assert_eq!(system.graph.messages().len(), 0);
}

/// A mailer that panics the first few times.
struct Panicking {
    times: AtomicU32,
    inner: mailrl_mailer::Mailer,
}

#[async_trait]
impl AsyncTransport for Panicking {
    type Ok = ();
    type Error = MailerError;

    async fn send_raw(&self, envelope: &Envelope, mail: &[u8]) -> Result<(), MailerError> {
        let left = |times: u32| times.checked_sub(1);
        if self
            .times
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
        {
            panic!("out of luck");
        }
        self.inner.send_raw(envelope, mail).await
    }
}

/// The same behind the announcement.
#[derive(Debug)]
struct PanickingInside;

#[async_trait]
impl AsyncTransport for PanickingInside {
    type Ok = ();
    type Error = mailrl_mailer::GraphError;

    async fn send_raw(&self, _: &Envelope, _: &[u8]) -> Result<(), Self::Error> {
        panic!("out of luck")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_before_the_mail_is_handed_over_is_a_try_that_failed() {
    let system = system().await;
    let mailer = Panicking {
        times: AtomicU32::new(1),
        inner: system.setup.mailer(),
    };
    let worker = system.setup.worker_with(OneMailer(Arc::new(mailer))).await;
    let id = quick_id("panic");
    system.outbox.enqueue(&id, FROM).await;
    let record = system.outbox.record_in(&id, Sent).await;
    assert_eq!(record.failures, 1);
    let reasons: Vec<_> = record
        .history
        .iter()
        .filter_map(|step| step.reason.as_deref())
        .collect();
    assert_eq!(reasons, ["the mailer panicked: out of luck"]);
    assert_eq!(worker.shutdown(Duration::from_secs(5)).await.sent, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_panic_at_the_handing_over_a_person_decides() {
    let system = system().await;
    let inner = WriteAhead::new(PanickingInside);
    let mailer = AnyMailer(RateLimitedGraphMailer::new(inner, system.setup.limiter()));
    let _worker = system.setup.worker_with(OneMailer(Arc::new(mailer))).await;
    let id = quick_id("panic");
    system.outbox.enqueue(&id, FROM).await;
    let record = system.outbox.record_in(&id, Unknown).await;
    assert_eq!(record.reason.as_deref(), Some("the mailer panicked: out of luck"));
    assert_ne!(record.state, Failed);
}

/// A mailer that has Redis go away for a moment each time before it sends, so often.
struct Unplugging {
    times: AtomicU32,
    redis: Arc<Mutex<RedisServer>>,
    inner: mailrl_mailer::Mailer,
}

#[async_trait]
impl AsyncTransport for Unplugging {
    type Ok = ();
    type Error = MailerError;

    async fn send_raw(&self, envelope: &Envelope, mail: &[u8]) -> Result<(), MailerError> {
        if self.times.fetch_sub(1, Ordering::Relaxed) > 0 {
            self.redis.lock().unwrap().kill();
            let redis = Arc::clone(&self.redis);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                tokio::task::spawn_blocking(move || redis.lock().unwrap().restart());
            });
        } else {
            self.times.store(0, Ordering::Relaxed);
        }
        self.inner.send_raw(envelope, mail).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_whose_record_cannot_be_written_first_is_not_sent_and_that_is_no_try() {
    let limiter = RedisServer::with_module([]);
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let redis = RedisServer::builder().arguments(durable).start();
    let graph = common::sim().start().await;
    let store = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(redis.url(), limiter.url(), &graph, &store);
    setup.lock = Duration::from_secs(2);
    setup.stalled_check = Duration::from_secs(1);
    let outbox = setup.outbox().await;
    let mailer = Unplugging {
        times: AtomicU32::new(1),
        redis: Arc::new(Mutex::new(redis)),
        inner: setup.mailer(),
    };
    let id = quick_id("unwritten");
    outbox.enqueue(&id, FROM).await;
    let worker = setup.worker_with(OneMailer(Arc::new(mailer))).await;
    let is_put_off = async || worker.summary().retried == 1;
    until("it is put off", Duration::from_secs(20), is_put_off).await;
    let record = outbox.record_in(&id, Sent).await;
    assert_eq!((record.failures, record.denials), (0, 1), "{record:?}");
    assert_eq!(graph.report().mailbox(FROM).accepted, 1);
    let reason = record
        .history
        .iter()
        .find_map(|step| step.reason.as_deref())
        .unwrap();
    assert!(
        reason.starts_with("the mail was not sent, for its record could not be written first"),
        "{reason}"
    );
}
