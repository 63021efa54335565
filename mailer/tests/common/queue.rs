//! The queue with its workers, over real Redis servers and the simulator.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bullmq::options::RedisConnectionOptions;
use bullmq::{Queue, QueueOptions};
use graph_sim::GraphSim;
use lettre::address::Envelope;
use mailrl_client::{MailRateLimiter, RateLimitedGraphMailer, RateLimiterConfig};
use mailrl_mailer::factory::{FactoryError, Mailers};
use mailrl_mailer::queue::{
    JOB, MailJob, MailStore, QUEUE, QueueWorker, QueueWorkerOptions, Record, Records,
};
use mailrl_mailer::service::{Policy, spread};
use mailrl_mailer::write_ahead::WriteAhead;
use mailrl_mailer::{AnyMailer, MailProviderService, Mailer, MessageId, MessageState, Sender};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// What a worker's process is told, as JSON.
const WORKER: &str = "MAILRL_TEST_WORKER";

/// All that a worker needs to know.
#[derive(Clone, Serialize, Deserialize)]
pub struct Setup {
    pub queue_url: String,
    pub limiter_url: String,
    pub graph_url: String,
    pub store: PathBuf,
    pub graph_timeout: Duration,
    pub lease: Duration,
    pub first_pause: Duration,
    pub claim_time: Duration,
    pub send_time: Duration,
    pub lock: Duration,
    pub stalled_check: Duration,
    pub sweep_every: Duration,
    pub overdue: Duration,
    pub concurrency: usize,
}

impl Setup {
    pub fn new(queue_url: String, limiter_url: String, graph: &GraphSim, store: &TempDir) -> Self {
        Self {
            queue_url,
            limiter_url,
            graph_url: graph.base_url(),
            store: store.path().to_owned(),
            graph_timeout: Duration::from_secs(30),
            lease: Duration::from_mins(2),
            first_pause: Duration::from_millis(100),
            claim_time: Duration::from_mins(1),
            send_time: Duration::from_secs(90),
            lock: Duration::from_secs(30),
            stalled_check: Duration::from_secs(30),
            sweep_every: Duration::from_mins(1),
            overdue: Duration::from_mins(1),
            concurrency: 50,
        }
    }

    pub fn limiter(&self) -> MailRateLimiter {
        // A machine that is busy with other tests is not what is tested here.
        let config = RateLimiterConfig::new(self.limiter_url.as_str()).deadline(Duration::from_secs(5));
        MailRateLimiter::new(config.lease(self.lease)).unwrap()
    }

    /// A mailer as the factory makes them.
    pub fn mailer(&self) -> Mailer {
        let graph = super::builder(&self.graph_url, &self.graph_url).timeout(self.graph_timeout);
        let graph = WriteAhead::new(graph.build().unwrap());
        Arc::new(AnyMailer(RateLimitedGraphMailer::new(graph, self.limiter())))
    }

    pub fn service<M: Mailers>(&self, mailers: M) -> MailProviderService<M> {
        let policy = Policy {
            first_pause: self.first_pause,
            ..Policy::default()
        };
        MailProviderService::new(mailers, policy)
    }

    pub fn mails(&self) -> MailStore {
        MailStore::open(&format!("file://{}", self.store.display())).unwrap()
    }

    pub fn options(&self) -> QueueWorkerOptions {
        QueueWorkerOptions {
            concurrency: self.concurrency,
            claim_time: self.claim_time,
            send_time: self.send_time,
            lock: self.lock,
            stalled_check: self.stalled_check,
            sweep_every: self.sweep_every,
            overdue: self.overdue,
            ..QueueWorkerOptions::new(self.queue_url.as_str())
        }
    }

    pub async fn worker(&self) -> QueueWorker {
        self.worker_with(OneMailer(self.mailer())).await
    }

    pub async fn worker_with<M: Mailers + 'static>(&self, mailers: M) -> QueueWorker {
        QueueWorker::start(self.service(mailers), self.mails(), self.options())
            .await
            .unwrap()
    }

    /// A worker in a process of its own, whose log goes to this file; the test file must have
    /// [`worker_process`] as a test of that name.
    pub fn worker_process(&self, log: &Path) -> Child {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker_process", "--ignored", "--nocapture"])
            .env(WORKER, serde_json::to_string(self).unwrap())
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    pub async fn outbox(&self) -> Outbox {
        let options =
            QueueOptions::new().connection(RedisConnectionOptions::new().url(self.queue_url.as_str()));
        let client = redis::Client::open(self.queue_url.as_str()).unwrap();
        Outbox {
            queue: Queue::with_options(QUEUE, options).await.unwrap(),
            records: Records::new(client, "bull", QUEUE),
            mails: self.mails(),
        }
    }
}

/// Every sender's mailer is the same one.
pub struct OneMailer(pub Mailer);

impl Mailers for OneMailer {
    fn mailer_for(&self, _: &Sender, _: &Envelope) -> Result<Mailer, FactoryError> {
        Ok(Arc::clone(&self.0))
    }
}

/// What a process does that [`Setup::worker_process`] started: it works until it gets SIGTERM.
pub async fn worker_process() {
    let Ok(setup) = std::env::var(WORKER) else {
        return;
    };
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .init();
    let setup: Setup = serde_json::from_str(&setup).unwrap();
    let mailer = setup.mailer();
    let worker = setup.worker_with(OneMailer(mailer.clone())).await;
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    terminated.recv().await;
    let summary = worker.shutdown(Duration::from_secs(10)).await;
    mailer.shutdown().await;
    println!("summary {}", serde_json::to_string(&summary).unwrap());
}

/// Who puts messages into the queue, and looks at what becomes of them.
pub struct Outbox {
    pub queue: Queue,
    pub records: Records,
    pub mails: MailStore,
}

impl Outbox {
    /// A job for one mail to one recipient, whose subject is the message's name.
    pub async fn job(&self, id: &MessageId, mailbox: &str) -> MailJob {
        let mail = mail(id, mailbox, &["a@example.net"]);
        let path = self.mails.put(id, mail.into()).await.unwrap();
        let data = serde_json::json!({ "message_id": id, "mime_path": path });
        serde_json::from_value(data).unwrap()
    }

    pub async fn enqueue(&self, id: &MessageId, mailbox: &str) {
        let job = self.job(id, mailbox).await;
        self.add(&job).await;
    }

    pub async fn add(&self, job: &MailJob) {
        self.queue
            .add(JOB, job)
            .job_id(job.message_id.as_str())
            .await
            .unwrap();
    }

    pub async fn record(&self, id: &MessageId) -> Option<Record> {
        let found = self.records.load(id).await.unwrap();
        found.map(|found| found.record)
    }

    /// The record of a message, once it is as wanted.
    pub async fn record_when(&self, id: &MessageId, wanted: impl Fn(&Record) -> bool) -> Record {
        let mut last = None;
        for _ in 0..1_500 {
            // Redis may be away.
            last = self
                .records
                .load(id)
                .await
                .ok()
                .flatten()
                .map(|found| found.record);
            if let Some(record) = last.clone().filter(&wanted) {
                return record;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("never happened: {last:#?}");
    }

    pub async fn record_in(&self, id: &MessageId, state: MessageState) -> Record {
        self.record_when(id, |record| record.state == state).await
    }

    /// Why a job failed, once it has.
    pub async fn failed_reason(&self, job_id: &str) -> String {
        for _ in 0..1_500 {
            if let Some(job) = self.queue.get_job(job_id).await.unwrap()
                && !job.failed_reason().is_empty()
            {
                return job.failed_reason().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{job_id} never failed");
    }
}

/// A mail whose subject is the message's name.
pub fn mail(id: &MessageId, mailbox: &str, to: &[&str]) -> Vec<u8> {
    let to = to.join(", ");
    format!("From: {mailbox}\r\nTo: {to}\r\nSubject: {id}\r\n\r\nHello.\r\n").into_bytes()
}

/// An id that begins so, of a message that waits less than this beyond what it is told.
pub fn id_with_spread(beginning: &str, below: Duration) -> MessageId {
    (0..100_000)
        .map(|n| format!("{beginning}-{n}").parse().unwrap())
        .find(|id| spread(id) < below)
        .unwrap()
}

/// An id of a message that hardly waits longer than it is told.
pub fn quick_id(beginning: &str) -> MessageId {
    id_with_spread(beginning, Duration::from_millis(300))
}

pub fn ms_from_now(time_ms: u64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(time_ms).unwrap() - i64::try_from(now.as_millis()).unwrap()
}

/// Waits until it is so.
pub async fn until<F: Future<Output = bool>>(what: &str, most: Duration, mut is_so: impl FnMut() -> F) {
    let give_up = tokio::time::Instant::now() + most;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < give_up, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
