//! What producers and people do with the queue, in a real Redis with the real `BullMQ`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bullmq::types::JobState;
use futures_util::StreamExt;
use mailrl_client::Mailbox;
use mailrl_mailer::queue::{
    Claimable, DecideError, Decided, Decision, Enqueued, Filter, MailJob, MailStore, QUEUE, QueueError,
    QueueOptions, Record, Records, Refusal, SendQueue,
};
use mailrl_mailer::service::{Delivery, DeliveryError};
use mailrl_mailer::{MailMessage, MessageId, MessageState, Sender, envelope_of};
use redis::Commands;
use tempfile::TempDir;
use test_support::RedisServer;

struct Setup {
    redis: RedisServer,
    folder: TempDir,
    queue: SendQueue,
    records: Records,
    jobs: bullmq::Queue,
}

fn options(redis_url: String, folder: &TempDir) -> QueueOptions {
    QueueOptions {
        redis_url,
        prefix: "bull".to_owned(),
        store: format!("file://{}", folder.path().display()),
    }
}

impl Setup {
    async fn new() -> Self {
        let redis = RedisServer::builder().start();
        let folder = tempfile::tempdir().unwrap();
        let connection = bullmq::options::RedisConnectionOptions::new().url(redis.url());
        let options_of_jobs = bullmq::options::QueueOptions::new().connection(connection);
        Self {
            queue: SendQueue::connect(&options(redis.url(), &folder)).await.unwrap(),
            records: Records::new(redis::Client::open(redis.url()).unwrap(), "bull", QUEUE),
            jobs: bullmq::Queue::with_options(QUEUE, options_of_jobs).await.unwrap(),
            redis,
            folder,
        }
    }

    async fn enqueue(&self, name: &str) -> Enqueued {
        self.queue
            .enqueue(&message(name, "news@example.com"))
            .await
            .unwrap()
    }

    /// A message in the queue that workers have brought to this state.
    async fn brought_to(&self, name: &str, state: MessageState) {
        assert_eq!(self.enqueue(name).await, Enqueued::Queued);
        let came_to = match state {
            MessageState::Pending => return,
            MessageState::Sending => None,
            MessageState::Sent => Some(Ok(Delivery::Sent)),
            MessageState::Failed => Some(Err(DeliveryError::Failed("too many recipients".into()))),
            MessageState::Unknown => Some(Err(DeliveryError::Unknown("a timeout".into()))),
            MessageState::Scheduled => panic!("a service schedules"),
        };
        self.step(name, |record, now| {
            assert_eq!(record.claim("w", now + 60_000, now), Ok(Claimable::Claimed));
            record.announce("w", now + 60_000).unwrap();
            if let Some(came_to) = came_to {
                record.settle("w", &came_to, now).unwrap();
            }
        })
        .await;
    }

    async fn step(&self, name: &str, step: impl FnOnce(&mut Record, u64)) {
        let mut found = self.records.load(&id(name)).await.unwrap().unwrap();
        let now = now_ms();
        step(&mut found.record, now);
        let written = self
            .records
            .compare_and_set(&id(name), found.version, &found.record, now)
            .await;
        assert!(written.unwrap().is_some());
    }

    async fn decide(&self, name: &str, decision: Decision) -> Result<Decided, DecideError> {
        self.queue.decide(&id(name), decision, "eve@host").await
    }

    async fn record(&self, name: &str) -> Record {
        self.queue.show(&id(name)).await.unwrap().unwrap().record
    }

    async fn job_state(&self, name: &str) -> JobState {
        self.jobs.get_job_state(name).await.unwrap()
    }

    fn mails(&self) -> usize {
        self.folder.path().join("messages").read_dir().unwrap().count()
    }

    async fn list(&self, filter: Filter) -> Vec<String> {
        let found: Vec<_> = self.queue.list(&filter).collect().await;
        found
            .into_iter()
            .map(|entry| entry.map_or_else(|error| error.to_string(), |entry| entry.id.to_string()))
            .collect()
    }
}

fn id(id: &str) -> MessageId {
    id.parse().unwrap()
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

fn message(name: &str, from: &str) -> MailMessage {
    let mail = format!("From: {from}\r\nTo: a@example.net\r\nSubject: {name}\r\n\r\nHello.\r\n");
    MailMessage {
        id: id(name),
        sender: Sender::SystemMailbox,
        envelope: envelope_of(mail.as_bytes(), None).unwrap(),
        mime: mail.into(),
        created_at: SystemTime::now(),
        failures: 0,
    }
}

#[tokio::test]
async fn a_message_in_the_queue_has_its_mail_its_record_and_its_job() {
    let setup = Setup::new().await;
    let message = message("m", "News@example.com");
    assert_eq!(setup.queue.enqueue(&message).await.unwrap(), Enqueued::Queued);
    let record = setup.record("m").await;
    assert_eq!(
        (record.state, record.mailbox.as_str()),
        (MessageState::Pending, "news@example.com")
    );
    let job = setup.jobs.get_job("m").await.unwrap().unwrap();
    assert_eq!(job.get_state().await.unwrap(), JobState::Waiting);
    let parsed = MailJob::parse(job.data()).unwrap();
    assert_eq!(parsed, record.job);
    let store = MailStore::open(&options(String::new(), &setup.folder).store).unwrap();
    let mail = store.get(&parsed.mime_path.clone().unwrap()).await.unwrap();
    assert_eq!(mail, message.mime);
    let again = parsed.message(mail, job.timestamp()).unwrap();
    assert_eq!(again.envelope, message.envelope);
}

#[tokio::test]
async fn a_job_is_kept_for_an_hour_after_its_end_and_a_failed_one_for_a_week() {
    let setup = Setup::new().await;
    setup.enqueue("m").await;
    let key = format!("bull:{QUEUE}:m");
    let options: String = setup.redis.connection().hget(key, "opts").unwrap();
    let options: serde_json::Value = serde_json::from_str(&options).unwrap();
    // In seconds, as BullMQ's scripts count.
    assert_eq!(options["removeOnComplete"]["age"], 3_600, "{options}");
    assert_eq!(options["removeOnComplete"]["count"], 1_000, "{options}");
    assert_eq!(options["removeOnFail"]["age"], 7 * 24 * 3_600, "{options}");
}

#[tokio::test]
async fn the_same_id_enqueued_twice_is_one_mail_and_the_first_one() {
    let setup = Setup::new().await;
    assert_eq!(setup.enqueue("m").await, Enqueued::Queued);
    let other = message("m", "other@example.com");
    let again = setup.queue.enqueue(&other).await.unwrap();
    assert_eq!(again, Enqueued::AlreadyThere(MessageState::Pending));
    assert_eq!(setup.record("m").await.mailbox, "news@example.com");
    assert_eq!(setup.mails(), 1);
    assert_eq!(setup.jobs.count().await.unwrap(), 1);
    setup
        .step("m", |record, now| {
            record.claim("w", now + 1, now).unwrap();
            record.settle("w", &Ok(Delivery::Sent), now).unwrap();
        })
        .await;
    assert_eq!(
        setup.queue.enqueue(&other).await.unwrap(),
        Enqueued::AlreadyThere(MessageState::Sent)
    );
}

#[tokio::test]
async fn of_many_who_enqueue_the_same_id_at_once_one_queues_it() {
    let setup = Setup::new().await;
    let mut queues = Vec::new();
    for _ in 0..4 {
        let options = options(setup.redis.url(), &setup.folder);
        queues.push(SendQueue::connect(&options).await.unwrap());
    }
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let queue = queues[n % queues.len()].clone();
            tokio::spawn(async move {
                let from = format!("from{n}@example.com");
                queue.enqueue(&message("m", &from)).await.unwrap()
            })
        })
        .collect();
    let mut counts = BTreeMap::new();
    for task in tasks {
        *counts.entry(format!("{:?}", task.await.unwrap())).or_insert(0) += 1;
    }
    assert_eq!(
        counts,
        BTreeMap::from([("Queued".to_owned(), 1), ("AlreadyThere(Pending)".to_owned(), 39)])
    );
    assert_eq!((setup.mails(), setup.jobs.count().await.unwrap()), (1, 1));
}

#[tokio::test]
async fn a_message_whose_job_was_never_added_gets_it_when_it_is_enqueued_again() {
    let setup = Setup::new().await;
    setup.enqueue("m").await;
    assert!(setup.jobs.remove("m").await.unwrap());
    assert_eq!(setup.job_state("m").await, JobState::Unknown);
    assert_eq!(
        setup.enqueue("m").await,
        Enqueued::AlreadyThere(MessageState::Pending)
    );
    assert_eq!(setup.job_state("m").await, JobState::Waiting);
}

#[tokio::test]
async fn without_redis_nothing_is_done_and_the_error_comes_within_seconds() {
    let mut setup = Setup::new().await;
    setup.redis.kill();
    let start = Instant::now();
    let error = setup.queue.enqueue(&message("m", "a@b.c")).await.unwrap_err();
    assert!(matches!(error, QueueError::Records(_)), "{error}");
    assert!(
        error.to_string().contains("records of messages in Redis"),
        "{error}"
    );
    let options = options(setup.redis.url(), &setup.folder);
    assert!(SendQueue::connect(&options).await.is_err());
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert_eq!(setup.mails(), 0);
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = SendQueue::connect(&options("localhost".into(), &folder))
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("redis://host:port"), "{error}");
}

#[tokio::test]
async fn what_waits_is_listed_by_when_it_is_due_and_what_failed_after_it() {
    let setup = Setup::new().await;
    setup.brought_to("unknown", MessageState::Unknown).await;
    setup.brought_to("failed", MessageState::Failed).await;
    setup.brought_to("sending", MessageState::Sending).await;
    setup.brought_to("sent", MessageState::Sent).await;
    setup
        .queue
        .enqueue(&message("pending", "Other@example.com"))
        .await
        .unwrap();
    let all = ["pending", "sending", "unknown", "failed"];
    assert_eq!(setup.list(Filter::default()).await, all);
    let only = |states: &[MessageState]| Filter {
        states: states.to_vec(),
        ..Filter::default()
    };
    assert_eq!(setup.list(only(&[MessageState::Failed])).await, ["failed"]);
    let two = [MessageState::Failed, MessageState::Unknown];
    assert_eq!(setup.list(only(&two)).await, ["unknown", "failed"]);
    let mailbox = Filter {
        mailbox: Some(Mailbox::new("OTHER@example.com")),
        ..Filter::default()
    };
    assert_eq!(setup.list(mailbox).await, ["pending"]);
}

#[tokio::test]
async fn a_list_of_more_than_a_page_is_whole_and_what_cannot_be_read_hides_nothing() {
    let setup = Setup::new().await;
    let template = {
        setup.enqueue("m0").await;
        setup.record("m0").await
    };
    let writes = (1..1_200).map(|n| {
        let (records, template) = (&setup.records, &template);
        async move {
            records
                .compare_and_set(&id(&format!("m{n}")), 0, template, 1)
                .await
        }
    });
    let written: Vec<_> = futures_util::stream::iter(writes)
        .buffer_unordered(50)
        .collect()
        .await;
    assert!(written.iter().all(Result::is_ok));
    let garbled = format!("bull:{QUEUE}:message:m7");
    let _: () = setup.redis.connection().hset(garbled, "record", "x").unwrap();
    let mut listed = setup.list(Filter::default()).await;
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 1_200);
    assert_eq!(
        listed.iter().filter(|it| it.contains("cannot be read")).count(),
        1
    );
}

#[tokio::test]
async fn who_has_a_message_sent_wakes_a_worker_up_for_it() {
    for state in [MessageState::Pending, MessageState::Failed, MessageState::Unknown] {
        let setup = Setup::new().await;
        setup.brought_to("m", state).await;
        // As a worker leaves it, or a fault: gone.
        setup.jobs.remove("m").await.unwrap();
        let decided = setup.decide("m", Decision::Send).await.unwrap();
        assert_eq!(
            decided,
            Decided {
                before: state,
                now: MessageState::Pending
            }
        );
        let record = setup.record("m").await;
        assert_eq!(record.state, MessageState::Pending);
        let reason = record.history.last().unwrap().reason.clone();
        assert_eq!(reason.as_deref(), Some("eve@host had it sent"));
        assert_eq!(setup.job_state("m").await, JobState::Waiting, "{state}");
    }
}

#[tokio::test]
async fn who_has_a_put_off_message_sent_need_not_wait_for_its_time() {
    let setup = Setup::new().await;
    setup.enqueue("m").await;
    setup.jobs.remove("m").await.unwrap();
    let record = setup.record("m").await;
    setup
        .jobs
        .add("send", &record.job)
        .job_id("m")
        .delay(Duration::from_hours(1))
        .await
        .unwrap();
    setup
        .step("m", |record, now| {
            record.state = MessageState::Scheduled;
            record.scheduled_on = Some(now + 3_600_000);
        })
        .await;
    assert_eq!(setup.job_state("m").await, JobState::Delayed);
    setup.decide("m", Decision::Send).await.unwrap();
    assert_eq!(setup.job_state("m").await, JobState::Waiting);
    assert!(setup.record("m").await.claim("w", 1, 0).is_ok());
}

#[tokio::test]
async fn a_message_that_was_dropped_or_was_sent_loses_its_job_and_its_mail() {
    for (state, decision, end) in [
        (MessageState::Pending, Decision::Drop, MessageState::Failed),
        (MessageState::Unknown, Decision::Drop, MessageState::Failed),
        (MessageState::Unknown, Decision::Sent, MessageState::Sent),
    ] {
        let setup = Setup::new().await;
        setup.brought_to("m", state).await;
        assert_eq!(setup.mails(), 1);
        let decided = setup.decide("m", decision).await.unwrap();
        assert_eq!(
            decided,
            Decided {
                before: state,
                now: end
            }
        );
        assert_eq!(setup.job_state("m").await, JobState::Unknown);
        assert_eq!(setup.mails(), 0);
    }
}

#[tokio::test]
async fn what_was_dropped_has_no_mail_to_send_any_more() {
    let setup = Setup::new().await;
    setup.enqueue("m").await;
    setup.decide("m", Decision::Drop).await.unwrap();
    let error = setup.decide("m", Decision::Send).await.unwrap_err();
    assert!(matches!(error, DecideError::NoMail(_)), "{error}");
    assert!(error.to_string().contains("enqueue it anew"), "{error}");
    assert_eq!(setup.record("m").await.state, MessageState::Failed);
}

#[tokio::test]
async fn while_a_message_is_being_sent_nobody_decides_on_it() {
    let setup = Setup::new().await;
    setup.brought_to("m", MessageState::Sending).await;
    for decision in [Decision::Send, Decision::Sent, Decision::Drop] {
        let error = setup.decide("m", decision).await.unwrap_err();
        let DecideError::Refused(Refusal::Held { until }) = error else {
            panic!("{error}");
        };
        assert!(until > now_ms());
    }
    assert_eq!(setup.mails(), 1);
}

#[tokio::test]
async fn a_message_that_nobody_knows_cannot_be_decided_on() {
    let setup = Setup::new().await;
    let error = setup.decide("m", Decision::Send).await.unwrap_err();
    assert!(matches!(error, DecideError::NoMessage), "{error}");
}

#[tokio::test]
async fn a_mail_that_a_producer_put_into_the_job_itself_is_sent_all_the_same() {
    let setup = Setup::new().await;
    let mime = "RnJvbTogbmV3c0BleGFtcGxlLmNvbQ0KVG86IGFAZXhhbXBsZS5uZXQNCg0K";
    let data = serde_json::json!({ "message_id": "m", "mime": mime });
    let added = setup.jobs.add("send", &data).await.unwrap();
    let job = MailJob::parse(&data).unwrap();
    let now = now_ms();
    let mut record = Record::new(
        job.without_mime(),
        added.id().to_owned(),
        "news@example.com".into(),
        now,
        now,
    );
    record.claim("w", now + 1, now).unwrap();
    let unknown = Err(DeliveryError::Unknown("a timeout".into()));
    record.settle("w", &unknown, now).unwrap();
    setup
        .records
        .compare_and_set(&id("m"), 0, &record, now)
        .await
        .unwrap();
    setup.decide("m", Decision::Send).await.unwrap();
    let record = setup.record("m").await;
    assert_eq!(record.job_id, "m");
    assert_eq!(setup.job_state(added.id()).await, JobState::Unknown);
    let store = MailStore::open(&options(String::new(), &setup.folder).store).unwrap();
    let mail = store.get(&record.job.mime_path.unwrap()).await.unwrap();
    assert_eq!(Some(mail), job.inline_mime().unwrap());
}

#[tokio::test]
async fn between_a_person_and_a_worker_at_the_same_moment_one_is_first() {
    let setup = Arc::new(Setup::new().await);
    for n in 0..40 {
        let name = format!("m{n}");
        setup.enqueue(&name).await;
        let worker = {
            let (setup, name) = (setup.clone(), name.clone());
            tokio::spawn(async move {
                let mut found = setup.records.load(&id(&name)).await.unwrap().unwrap();
                let now = now_ms();
                if found.record.claim("w", now + 60_000, now).is_err() {
                    return false;
                }
                let written = setup
                    .records
                    .compare_and_set(&id(&name), found.version, &found.record, now)
                    .await;
                written.unwrap().is_some()
            })
        };
        let person = {
            let (setup, name) = (setup.clone(), name.clone());
            tokio::spawn(async move { setup.decide(&name, Decision::Drop).await.is_ok() })
        };
        let (worker, person) = (worker.await.unwrap(), person.await.unwrap());
        assert!(worker != person, "both or neither got {name}");
    }
}
