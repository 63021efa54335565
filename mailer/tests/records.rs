//! The records of messages, in a real Redis.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mailrl_mailer::queue::{
    Claimable, Decision, KEPT, Listed, MailJob, Page, QUEUE, Record, Records, RecordsError,
};
use mailrl_mailer::service::{Delivery, DeliveryError};
use mailrl_mailer::{MessageId, MessageState};
use redis::Commands;
use test_support::RedisServer;

const NOW: u64 = 1_800_000_000_000;
const ALL: Page = Page {
    offset: 0,
    limit: 1_000,
};

fn records(redis: &RedisServer) -> Records {
    let client = redis::Client::open(redis.url()).unwrap();
    Records::new(client, "bull", QUEUE)
}

fn id(id: &str) -> MessageId {
    id.parse().unwrap()
}

fn key(id: &str) -> String {
    format!("bull:{QUEUE}:message:{id}")
}

fn record(name: &str) -> Record {
    let job = MailJob {
        message_id: id(name),
        tenant: None,
        from: None,
        to: None,
        created_at: None,
        mime: None,
        mime_path: Some(format!("messages/{name}.eml")),
    };
    Record::new(job, name.to_owned(), "news@example.com".to_owned(), NOW, NOW)
}

/// Takes a record on to each state, and writes it there.
async fn enter(records: &Records, name: &str, state: MessageState) -> Record {
    let mut record = record(name);
    if state != MessageState::Pending {
        record.claim("w", NOW + 60_000, NOW).unwrap();
    }
    let came_to = match state {
        MessageState::Sent => Some(Ok(Delivery::Sent)),
        MessageState::Failed => Some(Err(DeliveryError::Failed("no".to_owned()))),
        MessageState::Unknown => Some(Err(DeliveryError::Unknown("?".to_owned()))),
        _ => None,
    };
    if let Some(came_to) = came_to {
        record.settle("w", &came_to, NOW).unwrap();
    }
    assert_eq!(record.state, state);
    set(records, name, &record).await;
    record
}

/// Writes a record over whatever there is.
async fn set(records: &Records, name: &str, record: &Record) {
    let id = id(name);
    let version = records.load(&id).await.unwrap().map_or(0, |found| found.version);
    let written = records.compare_and_set(&id, version, record, NOW).await.unwrap();
    assert_eq!(written, Some(version + 1));
}

async fn listed(records: &Records) -> (Vec<Listed>, Vec<Listed>) {
    let open = records.open(0, None, ALL).await.unwrap();
    (open, records.failed(0, ALL).await.unwrap())
}

fn at(name: &str, at: Option<u64>) -> Listed {
    Listed { id: id(name), at }
}

#[tokio::test]
async fn of_all_who_write_a_version_one_wins() {
    const TASKS: u64 = 20;
    const WRITES: u64 = 25;
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let records = records.clone();
            tokio::spawn(async move {
                let mut won = Vec::new();
                while won.len() < usize::try_from(WRITES).unwrap() {
                    let found = records.load(&id("m")).await.unwrap();
                    let version = found.map_or(0, |found| found.version);
                    let mut record = record("m");
                    record.reason = Some(format!("task {task}"));
                    let written = records.compare_and_set(&id("m"), version, &record, NOW).await;
                    if let Some(version) = written.unwrap() {
                        won.push(version);
                    }
                }
                won
            })
        })
        .collect();
    let mut versions = Vec::new();
    for task in tasks {
        versions.extend(task.await.unwrap());
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=TASKS * WRITES).collect::<Vec<_>>());
}

#[tokio::test]
async fn of_many_workers_one_claims_a_message() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    set(&records, "m", &record("m")).await;
    let found = records.load(&id("m")).await.unwrap().unwrap();
    let claims: Vec<_> = (0..50)
        .map(|worker| {
            let (records, found) = (records.clone(), found.clone());
            tokio::spawn(async move {
                let mut record = found.record;
                let holder = worker.to_string();
                assert_eq!(record.claim(&holder, NOW + 1, NOW), Ok(Claimable::Claimed));
                let written = records
                    .compare_and_set(&id("m"), found.version, &record, NOW)
                    .await;
                written.unwrap().map(|_| holder)
            })
        })
        .collect();
    let mut holders = Vec::new();
    for claim in claims {
        holders.extend(claim.await.unwrap());
    }
    let stored = records.load(&id("m")).await.unwrap().unwrap().record;
    assert_eq!(holders, [stored.claim.unwrap().holder]);
}

#[tokio::test]
async fn only_records_of_messages_that_ended_expire() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    let mut connection = redis.connection();
    for (name, state, expires) in [
        ("pending", MessageState::Pending, false),
        ("sending", MessageState::Sending, false),
        ("unknown", MessageState::Unknown, false),
        ("sent", MessageState::Sent, true),
        ("failed", MessageState::Failed, true),
    ] {
        enter(&records, name, state).await;
        let left: i64 = connection.pttl(key(name)).unwrap();
        let kept = i64::try_from(KEPT.as_millis()).unwrap();
        if expires {
            assert!((kept - 60_000..=kept).contains(&left), "{name}: {left}");
        } else {
            assert_eq!(left, -1, "{name}");
        }
    }
    let mut revived = records.load(&id("failed")).await.unwrap().unwrap().record;
    revived.decide(Decision::Send, "eve", NOW).unwrap();
    set(&records, "failed", &revived).await;
    assert_eq!(connection.pttl::<_, i64>(key("failed")).unwrap(), -1);
}

#[tokio::test]
async fn each_message_is_in_the_list_that_its_state_says() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    enter(&records, "m", MessageState::Pending).await;
    assert_eq!(listed(&records).await, (vec![at("m", Some(NOW))], vec![]));
    enter(&records, "m", MessageState::Sending).await;
    assert_eq!(
        listed(&records).await,
        (vec![at("m", Some(NOW + 60_000))], vec![])
    );
    enter(&records, "m", MessageState::Unknown).await;
    assert_eq!(listed(&records).await, (vec![at("m", None)], vec![]));
    enter(&records, "m", MessageState::Failed).await;
    assert_eq!(listed(&records).await, (vec![], vec![at("m", Some(NOW))]));
    enter(&records, "m", MessageState::Pending).await;
    assert_eq!(listed(&records).await, (vec![at("m", Some(NOW))], vec![]));
    enter(&records, "m", MessageState::Sent).await;
    assert_eq!(listed(&records).await, (vec![], vec![]));
}

#[tokio::test]
async fn who_asks_for_what_is_due_gets_it_in_order_and_in_pages() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    for n in 0..10 {
        let name = format!("m{n}");
        let mut record = record(&name);
        record.claim("w", NOW + 10 - n, NOW).unwrap();
        set(&records, &name, &record).await;
    }
    enter(&records, "unknown", MessageState::Unknown).await;
    let due = records.open(NOW + 2, Some(NOW + 4), ALL).await.unwrap();
    let expected = [("m8", 2), ("m7", 3), ("m6", 4)].map(|(name, ms)| at(name, Some(NOW + ms)));
    assert_eq!(due, expected);
    let mut pages = Vec::new();
    for offset in [0, 4, 8, 12] {
        let page = records.open(0, None, Page { offset, limit: 4 }).await.unwrap();
        assert!(page.len() <= 4);
        pages.extend(page);
    }
    assert_eq!(pages.len(), 11);
    assert_eq!(pages.last(), Some(&at("unknown", None)));
    assert_eq!(pages, records.open(0, None, ALL).await.unwrap());
}

#[tokio::test]
async fn failures_are_forgotten_when_their_records_are() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    enter(&records, "old", MessageState::Failed).await;
    let later = NOW + u64::try_from(KEPT.as_millis()).unwrap() + 1;
    let mut new = record("new");
    new.decide(Decision::Drop, "eve", later).unwrap();
    records.compare_and_set(&id("new"), 0, &new, later).await.unwrap();
    assert_eq!(listed(&records).await.1, [at("new", Some(later))]);
}

#[tokio::test]
async fn many_records_are_read_in_one_round_trip_and_a_foreign_one_hides_no_other() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    for name in ["a", "c"] {
        enter(&records, name, MessageState::Pending).await;
    }
    let _: () = redis.connection().set(key("string"), "x").unwrap();
    let _: () = redis.connection().hset(key("garbled"), "record", "x").unwrap();
    let ids = ["a", "b", "string", "garbled", "c"].map(id);
    let read = records.load_many(&ids).await.unwrap();
    let state = |index: usize| {
        read[index]
            .as_ref()
            .map(|found| found.as_ref().map(|it| it.record.state))
            .map_err(ToString::to_string)
    };
    assert_eq!(state(0), Ok(Some(MessageState::Pending)));
    assert_eq!(state(1), Ok(None));
    assert!(state(2).unwrap_err().contains("WRONGTYPE"));
    assert!(state(3).unwrap_err().contains("no version"));
    assert_eq!(state(4), Ok(Some(MessageState::Pending)));
}

#[tokio::test]
async fn what_is_no_record_is_an_error_and_stays_as_it_is() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    let mut connection = redis.connection();
    let good = serde_json::to_string(&record("m")).unwrap();
    let hashes: [&[(&str, &str)]; 6] = [
        &[("record", &good)],
        &[("version", "1")],
        &[("version", "one"), ("record", &good)],
        &[("version", "1"), ("record", "{}")],
        &[("version", "1"), ("record", "\u{0}\u{ff}")],
        &[("other", "x")],
    ];
    for (n, fields) in hashes.iter().enumerate() {
        let name = format!("m{n}");
        let _: () = connection.hset_multiple(key(&name), fields).unwrap();
    }
    let _: () = connection.set(key("m6"), "a string").unwrap();
    for n in 0..7 {
        let name = format!("m{n}");
        let before: Vec<u8> = redis::cmd("DUMP").arg(key(&name)).query(&mut connection).unwrap();
        let loaded = records.load(&id(&name)).await;
        if n != 5 {
            assert!(
                matches!(loaded, Err(RecordsError::Foreign { .. })),
                "{n}: {loaded:?}"
            );
            let error = loaded.unwrap_err().to_string();
            assert!(
                error.contains(&key(&name)) && error.contains("nothing was changed"),
                "{error}"
            );
        }
        let written = records.compare_and_set(&id(&name), 0, &record(&name), NOW).await;
        assert!(!matches!(written, Ok(Some(_))), "{n}: {written:?}");
        let after: Vec<u8> = redis::cmd("DUMP").arg(key(&name)).query(&mut connection).unwrap();
        assert_eq!(before, after, "{n}");
    }
    assert_eq!(listed(&records).await, (vec![], vec![]));
}

#[tokio::test]
async fn a_list_that_is_none_keeps_records_from_being_written_half() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    let mut connection = redis.connection();
    for list in ["messages", "messages:failed"] {
        let list = format!("bull:{QUEUE}:{list}");
        let _: () = connection.set(&list, "a string").unwrap();
        let written = records.compare_and_set(&id("m"), 0, &record("m"), NOW).await;
        assert!(
            matches!(written, Err(RecordsError::Foreign { .. })),
            "{written:?}"
        );
        let keys: BTreeSet<String> = connection.keys("*").unwrap();
        assert_eq!(keys, BTreeSet::from([list.clone()]));
        let _: () = connection.del(&list).unwrap();
    }
}

#[tokio::test]
async fn a_redis_that_forgot_the_script_is_given_it_again() {
    let redis = RedisServer::builder().start();
    let records = records(&redis);
    for version in 0..3 {
        redis::cmd("SCRIPT")
            .arg("FLUSH")
            .query::<()>(&mut redis.connection())
            .unwrap();
        let written = records
            .compare_and_set(&id("m"), version, &record("m"), NOW)
            .await;
        assert_eq!(written.unwrap(), Some(version + 1));
    }
}

#[tokio::test]
async fn a_redis_that_is_gone_is_an_error_within_seconds_and_one_that_came_back_is_found() {
    let mut redis = RedisServer::builder().arguments(["--appendonly", "yes"]).start();
    let records = records(&redis);
    set(&records, "m", &record("m")).await;
    redis.kill();
    let start = Instant::now();
    assert!(matches!(
        records.load(&id("m")).await,
        Err(RecordsError::Redis(_))
    ));
    assert!(start.elapsed() < Duration::from_secs(10));
    redis.restart();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match records.load(&id("m")).await {
            Ok(found) => break assert_eq!(found.unwrap().record, record("m")),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

#[tokio::test]
async fn in_a_prefix_that_is_a_hash_tag_all_keys_are_in_one_slot() {
    let redis = RedisServer::builder().start();
    let client = redis::Client::open(redis.url()).unwrap();
    let records = Records::new(client, "{bull}", QUEUE);
    for (name, state) in [("{a}", MessageState::Pending), ("b", MessageState::Failed)] {
        enter(&records, name, state).await;
    }
    let keys: Vec<String> = redis.connection().keys("*").unwrap();
    assert_eq!(keys.len(), 4, "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("{bull}:")), "{keys:?}");
}
