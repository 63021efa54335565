//! The limiter's Redis is down and the queue's is up: mail goes out, and that is told.

mod common;

use std::time::Duration;

use common::queue::{Setup, quick_id};
use mailrl_mailer::MessageState::Sent;
use mailrl_mailer::service::events;
use test_support::{CapturedLog, RedisServer, free_port};

#[tokio::test]
async fn mail_goes_out_and_the_fail_open_is_logged() {
    let log = CapturedLog::start();
    let queue = RedisServer::builder().start();
    let graph = common::sim().start().await;
    let store = tempfile::tempdir().unwrap();
    let nobody = format!("redis://127.0.0.1:{}", free_port());
    let setup = Setup::new(queue.url(), nobody, &graph, &store);
    let outbox = setup.outbox().await;
    let worker = setup.worker().await;
    for nth in 0..5 {
        let id = quick_id(&format!("mail-{nth}"));
        outbox.enqueue(&id, "one@example.com").await;
        let record = outbox.record_in(&id, Sent).await;
        assert_eq!((record.failures, record.denials), (0, 0));
    }
    assert_eq!(graph.messages().len(), 5);
    assert_eq!(worker.shutdown(Duration::from_secs(5)).await.sent, 5);
    assert!(
        !log.of(mailrl_client::events::REDIS_ERROR).is_empty(),
        "{}",
        log.text()
    );
    assert_eq!(log.of(events::SENT).len(), 5, "{}", log.text());
}
