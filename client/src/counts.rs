//! How often each kind of decision was given, for a process's metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Decision;

/// How often each kind of decision was given since the limiter was made. A mail that waits for a
/// place among the concurrent sends is denied once for each time that it asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Budget was reserved.
    pub allowed: u64,
    /// The mail had to wait.
    pub denied: u64,
    /// The mail will never fit.
    pub too_large: u64,
    /// Redis gave no decision, the mail went out uncounted.
    pub fail_open: u64,
}

/// [`Counts`] that all tasks add to.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    allowed: AtomicU64,
    denied: AtomicU64,
    too_large: AtomicU64,
    fail_open: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, decision: &Decision) {
        let counter = match decision {
            Decision::Allowed(_) => &self.allowed,
            Decision::Denied(_) => &self.denied,
            Decision::TooLarge(_) => &self.too_large,
            Decision::FailOpen(_) => &self.fail_open,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            allowed: self.allowed.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
            too_large: self.too_large.load(Ordering::Relaxed),
            fail_open: self.fail_open.load(Ordering::Relaxed),
        }
    }
}
