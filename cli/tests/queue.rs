//! `mailrl enqueue` and `mailrl queue`, against a real Redis.

mod common;

use common::*;
use mailrl_mailer::queue::{QUEUE, Record, Records};
use mailrl_mailer::service::{Delivery, DeliveryError};
use mailrl_mailer::{MessageId, MessageState};
use redis::Commands;
use tempfile::TempDir;
use test_support::RedisServer;
use tokio::process::Command;

/// A Redis without the module, which the queue has no need of, and a folder of one's own.
struct Queue {
    redis: RedisServer,
    folder: TempDir,
}

impl Queue {
    fn new() -> Self {
        Self {
            redis: RedisServer::builder().start(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare_command(self.folder.path());
        command
            .args(words)
            .env("USER", "eve")
            .env("MAILRL_REDIS", self.redis.url());
        command
    }

    async fn run(&self, words: &[&str]) -> Run {
        run(&mut self.command(words)).await
    }

    fn file(&self, name: &str, id: &str) -> String {
        let content = format!("Message-ID: <{id}>\r\n{}", mail(name));
        std::fs::write(self.folder.path().join(name), content).unwrap();
        name.to_owned()
    }

    async fn enqueued(&self, id: &str) {
        let file = self.file(&format!("{id}.eml"), id);
        self.run(&["enqueue", &file]).await.ends_with(0);
    }

    /// What a worker does with a message.
    async fn worker(&self, id: &str, step: impl FnOnce(&mut Record)) {
        let client = redis::Client::open(self.redis.url()).unwrap();
        let records = Records::new(client, "bull", QUEUE);
        let id: MessageId = id.parse().unwrap();
        let mut found = records.load(&id).await.unwrap().unwrap();
        step(&mut found.record);
        let written = records
            .compare_and_set(&id, found.version, &found.record, 1)
            .await;
        assert!(written.unwrap().is_some());
    }

    /// A message that may have been sent.
    async fn unknown(&self, id: &str) {
        self.enqueued(id).await;
        self.worker(id, |record| {
            record.claim("w", u64::MAX, 1).unwrap();
            let unknown = Err(DeliveryError::Unknown("a timeout".to_owned()));
            record.settle("w", &unknown, 1).unwrap();
        })
        .await;
    }

    async fn state(&self, id: &str) -> String {
        let run = self.run(&["queue", "show", id, "--json"]).await;
        run.ends_with(0).json()[0]["state"].as_str().unwrap().to_owned()
    }

    fn jobs(&self) -> Vec<String> {
        let key = format!("bull:{QUEUE}:wait");
        self.redis.connection().lrange(key, 0, -1).unwrap()
    }
}

#[tokio::test]
async fn mails_are_queued_under_their_own_message_ids() {
    let queue = Queue::new();
    let (a, b) = (
        queue.file("a.eml", "a@example.com"),
        queue.file("b.eml", "b@example.com"),
    );
    let run = queue.run(&["enqueue", &a, &b]).await;
    run.ends_with(0)
        .says("a.eml: queued as a@example.com, from news@example.com to 1 recipient")
        .says("2 mails: 2 queued, 0 already there, 0 failed");
    assert_eq!(queue.jobs(), ["b@example.com", "a@example.com"]);
    let run = queue.run(&["enqueue", &a]).await;
    run.ends_with(0)
        .says("a.eml: already there as a@example.com (PENDING), not queued again")
        .says("1 mail: 0 queued, 1 already there, 0 failed");
    assert_eq!(queue.jobs().len(), 2);
    let mails = queue.folder.path().join(".local/share/mailrl/mails/messages");
    assert_eq!(mails.read_dir().unwrap().count(), 2);
}

#[tokio::test]
async fn a_mail_without_a_usable_message_id_gets_an_id_of_its_own_or_the_one_that_is_given() {
    let queue = Queue::new();
    let file = queue.file("a.eml", "4711");
    let command = ["enqueue", "--json", &file];
    let (first, second) = (queue.run(&command).await, queue.run(&command).await);
    let ids = [&first, &second].map(|run| run.json()[0]["id"].clone());
    assert_ne!(ids[0], ids[1]);
    queue
        .run(&["enqueue", "--id", "invoice-1", &file])
        .await
        .ends_with(0)
        .says("queued as invoice-1");
    queue
        .run(&["enqueue", "--id", "a:b", &file])
        .await
        .ends_with(2)
        .says("colons");
    queue
        .run(&["enqueue", "--id", "x", &file, "other.eml"])
        .await
        .ends_with(2)
        .says("give one file with it");
}

#[tokio::test]
async fn a_file_that_is_no_mail_fails_and_holds_up_no_other() {
    let queue = Queue::new();
    let good = queue.file("good.eml", "good");
    std::fs::write(queue.folder.path().join("bad.eml"), "To: a@b.c\r\n\r\n").unwrap();
    let run = queue
        .run(&["enqueue", "--json", "missing.eml", "bad.eml", &good])
        .await;
    run.ends_with(1)
        .says("3 mails: 1 queued, 0 already there, 2 failed");
    let json = run.json();
    assert_eq!(json[0]["reason"], "unreadable");
    assert_eq!(json[1]["reason"], "no_sender");
    assert!(json[1]["error"].as_str().unwrap().contains("--from"));
    assert_eq!(json[2]["result"], "queued");
    assert_eq!(json[2]["mailbox"], "news@example.com");
    let from = [
        "enqueue",
        "--from",
        "other@example.com",
        "--tenant",
        "contoso",
        "bad.eml",
        "--json",
    ];
    let json = queue.run(&from).await.ends_with(0).json();
    assert_eq!(json[0]["mailbox"], "other@example.com");
    let shown = queue
        .run(&["queue", "show", "--json", json[0]["id"].as_str().unwrap()])
        .await;
    assert_eq!(shown.json()[0]["tenant"], "contoso");
}

#[tokio::test]
async fn without_redis_every_mail_fails_and_the_command_says_why() {
    let mut queue = Queue::new();
    let file = queue.file("a.eml", "a");
    queue.redis.kill();
    let run = queue.run(&["enqueue", "--json", &file]).await;
    let json = run.ends_with(1).json();
    assert_eq!(
        (&json[0]["result"], &json[0]["reason"]),
        (&"failed".into(), &"queue".into())
    );
    assert!(!queue.folder.path().join(".local/share/mailrl/mails").exists());
    queue
        .run(&["queue"])
        .await
        .ends_with(1)
        .says("records of messages in Redis");
}

#[tokio::test]
async fn the_queue_may_be_elsewhere_than_the_limiters_redis() {
    let queue = Queue::new();
    let file = queue.file("a.eml", "a");
    let store = format!("file://{}/mails", queue.folder.path().display());
    let url = queue.redis.url();
    let place = [
        "--queue-redis",
        &url,
        "--queue-prefix",
        "{bull}",
        "--store",
        &store,
    ];
    let mut command = queue.command(&["enqueue", &file]);
    run(command.args(place).env("MAILRL_REDIS", nobody("redis")))
        .await
        .ends_with(0);
    assert!(queue.folder.path().join("mails/messages").exists());
    let mut command = queue.command(&["queue", "show", "a"]);
    command
        .env("MAILRL_QUEUE_REDIS", &url)
        .env("MAILRL_QUEUE_PREFIX", "{bull}")
        .env("MAILRL_STORE", &store)
        .env("MAILRL_REDIS", nobody("redis"));
    run(&mut command).await.ends_with(0).says("PENDING");
    queue
        .run(&["queue", "--store", "ftp://host/x"])
        .await
        .ends_with(1)
        .says("s3://bucket/prefix");
}

#[tokio::test]
async fn the_list_shows_what_waits_until_when_and_why() {
    let queue = Queue::new();
    queue.run(&["queue"]).await.ends_with(0).says("no messages");
    queue.enqueued("pending").await;
    queue.unknown("unknown").await;
    queue.enqueued("scheduled").await;
    queue
        .worker("scheduled", |record| {
            record.state = MessageState::Scheduled;
            record.scheduled_on = Some(4_102_444_800_000);
            record.reason = Some("minute".to_owned());
            record.denials = 3;
        })
        .await;
    let run = queue.run(&["queue"]).await;
    let row = |id: &str| {
        let row = run.stdout.lines().find(|line| line.starts_with(id)).unwrap();
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("pending"), "pending PENDING news@example.com - 0 0 -");
    assert_eq!(row("unknown"), "unknown UNKNOWN news@example.com - 0 0 a timeout");
    let scheduled = row("scheduled");
    assert!(
        scheduled.starts_with("scheduled SCHEDULED news@example.com 2100-01-01 00:00:00 UTC (in "),
        "{scheduled}"
    );
    assert!(scheduled.ends_with(" 3 0 minute"), "{scheduled}");
    let ids = |run: &Run| {
        let json = run.json();
        json.iter()
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let unknown = queue.run(&["queue", "--state", "UNKNOWN", "--json"]).await;
    assert_eq!(ids(&unknown), ["unknown"]);
    let first = queue.run(&["queue", "--limit", "2", "--json"]).await;
    assert_eq!(ids(&first), ["pending", "scheduled"]);
    first.says("--limit shows more");
    let nobody = queue
        .run(&["queue", "--mailbox", "other@example.com", "--json"])
        .await;
    assert!(ids(&nobody).is_empty());
}

#[tokio::test]
async fn a_person_decides_on_what_may_have_been_sent() {
    let queue = Queue::new();
    for id in ["a", "b", "c"] {
        queue.unknown(id).await;
    }
    queue
        .run(&["queue", "sent", "a"])
        .await
        .ends_with(0)
        .says("a: was sent, and stays so (it was UNKNOWN)");
    queue
        .run(&["queue", "send", "b"])
        .await
        .ends_with(0)
        .says("b: will be sent now");
    queue
        .run(&["queue", "drop", "c"])
        .await
        .ends_with(0)
        .says("c: will not be sent");
    assert_eq!(
        [
            queue.state("a").await,
            queue.state("b").await,
            queue.state("c").await
        ],
        ["SENT", "PENDING", "FAILED"]
    );
    assert_eq!(queue.jobs(), ["b"]);
    let shown = queue.run(&["queue", "show", "b"]).await;
    shown
        .ends_with(0)
        .says("UNKNOWN")
        .says("eve@")
        .says("had it sent");
}

#[tokio::test]
async fn what_cannot_be_decided_is_told_and_holds_up_no_other() {
    let queue = Queue::new();
    for id in ["sending", "sent", "waiting"] {
        queue.enqueued(id).await;
    }
    queue
        .worker("sending", |record| {
            record.claim("w", 4_102_444_800_000, 1).unwrap();
        })
        .await;
    queue
        .worker("sent", |record| {
            record.claim("w", u64::MAX, 1).unwrap();
            record.settle("w", &Ok(Delivery::Sent), 1).unwrap();
        })
        .await;
    let run = queue
        .run(&["queue", "drop", "none", "sending", "sent", "waiting"])
        .await;
    run.ends_with(1)
        .says("none: there is no message of that id")
        .says("sending: a worker is sending it right now: look again at 2100-01-01 00:00:00 UTC")
        .says("sent: it was sent, so it cannot be dropped")
        .says("waiting: will not be sent (it was PENDING)");
    queue
        .run(&["queue", "sent", "waiting"])
        .await
        .ends_with(1)
        .says("waiting: it is FAILED, and as such cannot be settled as sent");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_told_and_hides_no_other() {
    let queue = Queue::new();
    for id in ["a", "b"] {
        queue.enqueued(id).await;
    }
    let key = format!("bull:{QUEUE}:message:a");
    let _: () = queue.redis.connection().hset(&key, "record", "x").unwrap();
    let run = queue.run(&["queue", "--json"]).await;
    run.ends_with(1).says(&format!("Please look at {key} in Redis"));
    assert_eq!(run.json()[0]["id"], "b");
}
