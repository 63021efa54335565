//! What a mail costs on its way through the service, the decorator and the write-ahead, and how many
//! mails a second one worker takes out of the queue; Graph, Redis and all else share this machine.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use common::queue::{OneMailer, Setup, mail, until};
use lettre::AsyncTransport as _;
use lettre::address::Envelope;
use mailrl_mailer::queue::Record;
use mailrl_mailer::write_ahead::{self, BeforeSend, NotRecorded};
use mailrl_mailer::{MailMessage, MessageId, Sender};
use test_support::RedisServer;

const SENDS: usize = 2_000;
/// What is promised.
const MOST_ADDED: Duration = Duration::from_millis(1);

const MAILS: u32 = 1_000;
const MAILBOXES: u32 = 200;
/// What is promised.
const LEAST_MAILS_A_SECOND: f64 = 500.0;

const FROM: &str = "one@example.com";

#[tokio::main]
async fn main() {
    // Limits out of the way.
    let module = [
        "window",
        "rolling",
        "per-minute",
        "1000000",
        "recipients-per-day",
        "100000000",
    ];
    let redis = RedisServer::with_module(module);
    let graph = common::sim().start().await;
    let store = tempfile::tempdir().expect("a temporary directory");
    let setup = Setup::new(redis.url(), redis.url(), &graph, &store);
    print_added(&setup).await;
    let drain = async || graph.messages().len();
    print_drain(&setup, drain).await;
}

/// One mail after the other, by each way in turn, so that all ways see the same machine.
async fn print_added(setup: &Setup) {
    let direct = common::builder(&setup.graph_url, &setup.graph_url)
        .build()
        .expect("a mailer");
    let service = setup.service(OneMailer(setup.mailer()));
    let records = setup.outbox().await.records;
    let mut took = [const { Vec::new() }; 3];
    for nth in 0..SENDS {
        let id: MessageId = format!("mail-{nth}").parse().expect("an id");
        let message = message(&id);
        let hook: BeforeSend = {
            let (records, id, record) = (records.clone(), id.clone(), record(&id));
            Arc::new(move || {
                let (records, id, record) = (records.clone(), id.clone(), record.clone());
                Box::pin(async move {
                    let written = records.compare_and_set(&id, 0, &record, 0).await;
                    written
                        .map(|_| ())
                        .map_err(|error| NotRecorded(error.to_string()))
                })
            })
        };
        let start = Instant::now();
        direct
            .send_raw(&message.envelope, &message.mime)
            .await
            .expect("sent");
        took[0].push(start.elapsed());
        let start = Instant::now();
        service.send(&message).await.expect("sent");
        took[1].push(start.elapsed());
        let start = Instant::now();
        write_ahead::scope(hook, service.send(&message))
            .await
            .expect("sent");
        took[2].push(start.elapsed());
    }
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(["one mail at a time", "median", "99 %", "added", "promised"]);
    let [direct, ..] = &took;
    let direct = share(direct, 0.5);
    let ways = [
        "Graph mailer",
        "service, decorator, Graph mailer",
        "the same with a record written ahead",
    ];
    for (way, took) in ways.iter().zip(&took) {
        let median = share(took, 0.5);
        table.add_row([
            (*way).to_owned(),
            format!("{median:.2?}"),
            format!("{:.2?}", share(took, 0.99)),
            format!("{:.2?}", median.saturating_sub(direct)),
            format!("{MOST_ADDED:?}"),
        ]);
    }
    print(table);
}

async fn print_drain(setup: &Setup, sent: impl AsyncFn() -> usize) {
    let outbox = setup.outbox().await;
    let before = sent().await;
    for nth in 0..MAILS {
        let id = format!("queued-{nth}").parse().expect("an id");
        outbox
            .enqueue(&id, &format!("box{}@example.com", nth % MAILBOXES))
            .await;
    }
    let start = Instant::now();
    let worker = setup.worker().await;
    let all_sent = async || worker.summary().sent == u64::from(MAILS);
    until("all are sent", Duration::from_mins(1), all_sent).await;
    let took = start.elapsed();
    assert_eq!(sent().await - before, MAILS as usize);
    worker.shutdown(Duration::from_secs(10)).await;
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(["through queue and worker", "took", "mails a second", "promised"]);
    table.add_row([
        format!("{MAILS} mails from {MAILBOXES} mailboxes"),
        format!("{took:.2?}"),
        format!("{:.0}", f64::from(MAILS) / took.as_secs_f64()),
        format!("{LEAST_MAILS_A_SECOND:.0}"),
    ]);
    print(table);
}

fn message(id: &MessageId) -> MailMessage {
    let to = vec!["a@example.net".parse().expect("an address")];
    MailMessage {
        id: id.clone(),
        sender: Sender::SystemMailbox,
        envelope: Envelope::new(Some(FROM.parse().expect("an address")), to).expect("an envelope"),
        mime: mail(id, FROM, &["a@example.net"]).into(),
        created_at: SystemTime::now(),
        failures: 0,
    }
}

fn record(id: &MessageId) -> Record {
    let job = serde_json::json!({ "message_id": id, "mime_path": "messages/mail.eml" });
    let job = serde_json::from_value(job).expect("a job");
    Record::new(job, id.to_string(), FROM.to_owned(), 0, 0)
}

fn share(took: &[Duration], share: f64) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let nth = (took.len() as f64 * share) as usize;
    took[nth.min(took.len() - 1)]
}

fn print(mut table: Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}
