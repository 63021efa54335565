//! The log of one test, as JSON lines.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What this thread logs from now on: for tests that run on one thread.
///
/// One subscriber serves the whole process. With one for each test, tracing remembers a log entry as
/// switched off when a test without a subscriber comes to it first, and the others miss it.
#[derive(Debug)]
pub struct CapturedLog {
    _only_made_by_start: (),
}

impl CapturedLog {
    /// Starts with an empty log.
    #[must_use]
    pub fn start() -> Self {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            tracing_subscriber::fmt()
                .json()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(ThisThread)
                .init();
        });
        LINES.take();
        Self {
            _only_made_by_start: (),
        }
    }

    /// All of it, as it was written.
    ///
    /// # Panics
    /// If it is no UTF-8.
    #[must_use]
    pub fn text(&self) -> String {
        LINES.with_borrow(|bytes| String::from_utf8(bytes.clone()).expect("UTF-8"))
    }

    /// Level and fields of all entries of this event.
    ///
    /// # Panics
    /// If something else than JSON lines was logged.
    #[must_use]
    pub fn of(&self, event: &str) -> Vec<(String, Value)> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
            .filter(|entry| entry["fields"]["event"] == event)
            .map(|entry| {
                let level = entry["level"].as_str().expect("a level").to_owned();
                (level, entry["fields"].clone())
            })
            .collect()
    }
}

/// Writes to the buffer of the thread that logs.
struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for ThisThread {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}
