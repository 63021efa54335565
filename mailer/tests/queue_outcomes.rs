//! What a message's record says after each thing that can happen to its mail.

mod common;

use std::time::Duration;

use common::queue::{Outbox, Setup, ms_from_now, quick_id, until};
use graph_sim::{Fault, GraphSim};
use mailrl_mailer::MessageState::{Failed, Scheduled, Sent, Unknown};
use mailrl_mailer::queue::{MailJob, QueueWorker, Record};
use mailrl_mailer::{MessageId, MessageState};
use tempfile::TempDir;
use test_support::RedisServer;

/// A queue with one worker, that a test puts messages into.
struct System {
    graph: GraphSim,
    setup: Setup,
    outbox: Outbox,
    _redis: RedisServer,
    _store: TempDir,
}

impl System {
    async fn new<const N: usize>(module: [&str; N]) -> Self {
        let redis = RedisServer::with_module(module);
        let graph = common::sim().start().await;
        let store = tempfile::tempdir().unwrap();
        let mut setup = Setup::new(redis.url(), redis.url(), &graph, &store);
        setup.graph_timeout = Duration::from_secs(1);
        Self {
            outbox: setup.outbox().await,
            graph,
            setup,
            _redis: redis,
            _store: store,
        }
    }

    async fn worker(&self) -> QueueWorker {
        self.setup.worker().await
    }
}

fn mailbox(id: &MessageId) -> String {
    format!("{id}@example.com")
}

async fn after_fault(system: &System, name: &str, fault: Fault) -> (MessageId, Record) {
    let id = quick_id(name);
    system.graph.inject(fault.mailbox(&mailbox(&id)));
    system.outbox.enqueue(&id, &mailbox(&id)).await;
    let has_come_to_something =
        |record: &Record| !matches!(record.state, MessageState::Pending | MessageState::Sending);
    let record = system.outbox.record_when(&id, has_come_to_something).await;
    (id, record)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_may_have_been_sent_is_never_posted_again() {
    let mut system = System::new([]).await;
    // Every way to be sent again, as often as can be.
    system.setup.sweep_every = Duration::from_millis(100);
    system.setup.overdue = Duration::ZERO;
    system.setup.lock = Duration::from_secs(1);
    system.setup.stalled_check = Duration::from_millis(500);
    let worker = system.worker().await;
    let rows = [
        ("status-504", Fault::answer(504)),
        ("status-504-after", Fault::answer(504).after_accepting()),
        ("status-502", Fault::answer(502)),
        ("unknown-error", Fault::answer(500).code("UnknownError")),
        (
            "concurrency",
            Fault::answer(429)
                .code("CommandConcurrencyLimitReached")
                .retry_after("1"),
        ),
        ("reset", Fault::reset()),
        ("reset-after", Fault::reset().after_accepting()),
        ("hang", Fault::hang()),
        ("hang-after", Fault::hang().after_accepting()),
    ];
    let mut ids = Vec::new();
    for (name, fault) in rows {
        let (id, record) = after_fault(&system, name, fault).await;
        assert_eq!(record.state, Unknown, "{name}: {record:?}");
        assert_eq!((record.failures, record.denials), (0, 0), "{name}: {record:?}");
        let reason = system.outbox.failed_reason(id.as_str()).await;
        assert_eq!(Some(reason), record.reason, "{name}");
        // The same message by another job.
        let job = system.outbox.job(&id, &mailbox(&id)).await;
        system.outbox.queue.add("again", job).await.unwrap();
        ids.push(id);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let report = system.graph.report();
    for id in ids {
        let seen = report.mailbox(&mailbox(&id));
        assert_eq!(seen.faults, 1, "{id}: {report}");
        assert_eq!(
            seen.accepted,
            u64::from(id.as_str().contains("-after")),
            "{id}: {report}"
        );
        assert_eq!(system.outbox.record(&id).await.unwrap().state, Unknown);
    }
    assert_eq!(worker.shutdown(Duration::from_secs(5)).await.unknown, 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_was_throttled_waits_as_long_as_it_was_told_and_that_is_no_try() {
    let system = System::new([]).await;
    let _worker = system.worker().await;
    let throttled = || Fault::answer(429).code("ApplicationThrottled");
    let rows = [
        ("seconds", throttled().retry_after("17"), 17),
        ("fraction", throttled().retry_after("2.5"), 2),
        ("list", throttled().retry_after("3, 40"), 40),
        ("two", throttled().retry_after("5").retry_after("50"), 50),
        ("zero", throttled().retry_after("0"), 1),
        ("rubbish", throttled().retry_after("soon"), 60),
        ("none", throttled(), 60),
        ("busy", Fault::answer(503).retry_after("20"), 20),
    ];
    for (name, fault, seconds) in rows {
        let (id, record) = after_fault(&system, name, fault).await;
        assert_eq!(record.state, Scheduled, "{name}: {record:?}");
        assert_eq!((record.failures, record.denials), (0, 1), "{name}: {record:?}");
        assert_eq!(record.reason.as_deref(), Some("upstream"), "{name}");
        let wait = ms_from_now(record.scheduled_on.unwrap());
        let told = seconds * 1000;
        assert!((told - 5_000..=told + 1_000).contains(&wait), "{name}: {wait}");
        let denied_at = record.history.last().unwrap().at;
        let waits = record.scheduled_on.unwrap() - denied_at;
        // The record is written a little after the decision.
        assert!(waits + 500 >= told.unsigned_abs(), "{name}: {waits}");
        let job = system.outbox.queue.get_job(id.as_str()).await.unwrap().unwrap();
        assert_eq!(job.attempts_made(), 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_was_not_sent_is_tried_again_five_times_and_then_fails() {
    let mut system = System::new([]).await;
    system.setup.first_pause = Duration::from_millis(1);
    let _worker = system.worker().await;
    for (name, fault) in [
        ("status-500", Fault::answer(500)),
        ("status-503", Fault::answer(503)),
    ] {
        let (id, record) = after_fault(&system, name, fault).await;
        assert_eq!((record.failures, record.denials), (1, 0), "{name}: {record:?}");
        let record = system.outbox.record_in(&id, Sent).await;
        assert_eq!(record.failures, 1, "{name}: {record:?}");
        assert_eq!(system.graph.report().mailbox(&mailbox(&id)).accepted, 1);
    }
    let (id, _) = after_fault(&system, "for-ever", Fault::answer(500).times(100)).await;
    let record = system.outbox.record_in(&id, Failed).await;
    let reason = record.reason.unwrap();
    assert!(reason.ends_with("that was try 6, the last one"), "{reason}");
    assert_eq!(system.graph.report().mailbox(&mailbox(&id)).faults, 6);
    assert_eq!(system.outbox.failed_reason(id.as_str()).await, reason);
    // It is there for who has it sent after all.
    system
        .outbox
        .mails
        .get(&record.job.mime_path.unwrap())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_can_never_be_sent_fails_at_once_and_says_why() {
    let system = System::new(["recipients-per-day", "2"]).await;
    let _worker = system.worker().await;

    let (_, record) = after_fault(
        &system,
        "refused",
        Fault::answer(400).code("ErrorInvalidRecipients"),
    )
    .await;
    assert_eq!(record.state, Failed);
    assert!(record.reason.unwrap().contains("ErrorInvalidRecipients"));

    let job = |id: &str, rest: serde_json::Value| -> MailJob {
        let mut data = rest;
        data["message_id"] = id.into();
        serde_json::from_value(data).unwrap()
    };
    let mime = "RnJvbTogYUBleGFtcGxlLmNvbQpUbzogYkBleGFtcGxlLm5ldAoKSGVsbG8uCg==";
    let to = ["a@example.net", "b@example.net", "c@example.net"];
    let old = serde_json::json!(ms_from_now(0).unsigned_abs() - 49 * 3_600_000);
    for (id, rest, reason) in [
        (
            "too-large",
            serde_json::json!({ "mime": mime, "to": to }),
            "will never fit its mailbox's limit",
        ),
        (
            "too-old",
            serde_json::json!({ "mime": mime, "created_at": old }),
            "it is 49.0 h old, and the age limit is 48 h",
        ),
        (
            "missing",
            serde_json::json!({ "mime_path": "messages/nobody.eml" }),
            "is not in the store",
        ),
        (
            "nobody",
            serde_json::json!({ "mime": "RnJvbTogYUBleGFtcGxlLmNvbQoKSGVsbG8uCg==" }),
            "no recipient",
        ),
    ] {
        let job = job(id, rest);
        system.outbox.add(&job).await;
        let record = system.outbox.record_in(&job.message_id, Failed).await;
        let told = record.reason.unwrap();
        assert!(told.contains(reason), "{id}: {told}");
        assert_eq!(record.failures, 0, "{id}");
        assert_eq!(system.outbox.failed_reason(id).await, told);
    }
    assert_eq!(system.graph.messages().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_another_form_fails_with_the_reason_and_the_worker_goes_on() {
    let system = System::new([]).await;
    let _worker = system.worker().await;
    for (nth, (data, wrong)) in [
        (serde_json::json!(null), "the top"),
        (serde_json::json!("hello"), "the top"),
        (serde_json::json!({ "mime": "SGVsbG8=" }), "message_id"),
        (
            serde_json::json!({ "message_id": "a:b", "mime": "SGVsbG8=" }),
            "message_id",
        ),
        (
            serde_json::json!({ "message_id": "a", "mime": "SGVsbG8=", "cc": [] }),
            "cc",
        ),
        (serde_json::json!({ "message_id": "a" }), "there is no mail"),
        (serde_json::json!({ "message_id": "a", "mime": "Hello!" }), "mime"),
        (
            serde_json::json!({ "message_id": "a", "mime": "SGVsbG8=", "to": ["b"] }),
            "\"b\" is no mail address",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let job_id = format!("malformed-{nth}");
        system
            .outbox
            .queue
            .add("mail", data)
            .job_id(&*job_id)
            .await
            .unwrap();
        let reason = system.outbox.failed_reason(&job_id).await;
        assert!(
            reason.starts_with("the job's data is wrong at ") && reason.contains(wrong),
            "{reason}"
        );
    }
    let id = quick_id("good");
    system.outbox.enqueue(&id, &mailbox(&id)).await;
    system.outbox.record_in(&id, Sent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn being_denied_uses_up_no_attempt_and_no_try() {
    let system = System::new(["per-minute", "1"]).await;
    let worker = system.worker().await;
    let [first, second] = ["first", "second"].map(quick_id);
    system.outbox.enqueue(&first, "one@example.com").await;
    let sent = system.outbox.record_in(&first, Sent).await;
    assert_eq!(sent.mailbox, "one@example.com");
    let job = system.outbox.job(&second, "one@example.com").await;
    let added = system
        .outbox
        .queue
        .add("mail", job)
        .job_id(second.as_str())
        .attempts(1);
    added.await.unwrap();
    let record = system.outbox.record_in(&second, Scheduled).await;
    assert_eq!((record.failures, record.denials), (0, 1));
    assert_eq!(record.reason.as_deref(), Some("minute"));
    // Its turn comes sooner than it was told.
    let mut found = system.outbox.records.load(&second).await.unwrap().unwrap();
    for denials in 2..=4 {
        found.record.scheduled_on = Some(0);
        let written = system
            .outbox
            .records
            .compare_and_set(&second, found.version, &found.record, 0);
        written.await.unwrap().unwrap();
        let queue = &system.outbox.queue;
        until("it is delayed", Duration::from_secs(10), async || {
            queue.get_delayed_count().await.unwrap() == 1
        })
        .await;
        queue.promote_jobs(1).await.unwrap();
        system
            .outbox
            .record_when(&second, |record| record.denials == denials)
            .await;
        found = system.outbox.records.load(&second).await.unwrap().unwrap();
    }
    assert_eq!(found.record.failures, 0);
    let job = system
        .outbox
        .queue
        .get_job(second.as_str())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((job.attempts_made(), job.failed_reason()), (0, ""));
    let summary = worker.shutdown(Duration::from_secs(5)).await;
    assert_eq!((summary.sent, summary.deferred, summary.failed), (1, 4, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_given_up_does_not_overwrite_what_was_decided_since() {
    use mailrl_mailer::queue::Decision;
    let mut system = System::new([]).await;
    system.setup.graph_timeout = Duration::from_secs(30);
    system.setup.send_time = Duration::from_millis(200);
    system.graph.set_latency(2_500..=2_500);
    let slow = system.worker().await;
    let id = quick_id("slow");
    system.outbox.enqueue(&id, &mailbox(&id)).await;
    let is_announced = |record: &Record| record.claim.as_ref().is_some_and(|claim| claim.announced);
    system.outbox.record_when(&id, is_announced).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Another job for the same message finds that nobody has been heard of.
    let job = system.outbox.job(&id, &mailbox(&id)).await;
    system.outbox.queue.add("again", job).await.unwrap();
    system.outbox.record_in(&id, Unknown).await;
    let mut found = system.outbox.records.load(&id).await.unwrap().unwrap();
    found.record.decide(Decision::Drop, "a person", 1).unwrap();
    let decided = system
        .outbox
        .records
        .compare_and_set(&id, found.version, &found.record, 1);
    decided.await.unwrap().unwrap();

    let accepted = || system.graph.messages().len() == 1;
    common::eventually("the mail is accepted", accepted).await;
    slow.shutdown(Duration::from_secs(10)).await;
    let record = system.outbox.record(&id).await.unwrap();
    assert_eq!(record.state, Failed, "{record:?}");
    assert_eq!(record.reason.as_deref(), Some("a person dropped it"));
}
