//! What a test logs, as JSON, if it runs on one thread.
//!
//! One subscriber serves all threads: one for each would let a thread that has none turn entries off
//! for those that have.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

use serde_json::Value;
use tracing::Level;

thread_local! {
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// All that is logged on this thread, whatever its level.
pub struct Log(());

impl Log {
    /// Keeps it from now on.
    pub fn keep() -> Self {
        static START: Once = Once::new();
        START.call_once(|| {
            tracing_subscriber::fmt()
                .json()
                .flatten_event(true)
                .with_max_level(Level::TRACE)
                .with_writer(|| ThisThread)
                .init();
        });
        WRITTEN.with_borrow_mut(Vec::clear);
        Self(())
    }

    #[expect(clippy::unused_self, reason = "whoever has a log has started it")]
    pub fn text(&self) -> String {
        WRITTEN.with_borrow(|bytes| String::from_utf8(bytes.clone()).unwrap())
    }

    /// All entries of this event.
    pub fn events(&self, event: &str) -> Vec<Value> {
        let text = self.text();
        let entries = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["event"] == event).collect()
    }
}

struct ThisThread;

impl Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.with_borrow_mut(|written| written.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
