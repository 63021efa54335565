//! The limiter's Redis is down and the queue's is up: mail goes out, and that is told.

mod common;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::queue::{Setup, quick_id};
use mailrl_mailer::MessageState::Sent;
use test_support::{RedisServer, free_port};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_out_and_the_fail_open_is_logged() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
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
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("event=\"mail.rateLimit.redisError\""), "{log}");
    assert_eq!(log.matches("event=\"mail.sent\"").count(), 5, "{log}");
}
