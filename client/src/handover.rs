//! Has the mail been handed to the wire yet? A mailer tells, so that a send that is dropped half
//! way (a timeout, a shutdown) gives its budget back exactly when the mail cannot have gone out.
//!
//! The decorator runs each send in [`observe`]; a mailer calls [`request_not_yet_written`] when it
//! starts and [`request_written`] just before the first byte of the mail leaves. Of a mailer that
//! calls neither, a dropped send counts as one that may have gone out.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const SILENT: u8 = 0;
const NOT_WRITTEN: u8 = 1;
const WRITTEN: u8 = 2;

tokio::task_local! {
    static CURRENT: Handover;
}

/// How far one send has come; cheap to clone, shared between the send and whoever watches it.
#[derive(Debug, Clone, Default)]
pub struct Handover(Arc<AtomicU8>);

impl Handover {
    /// True if the mailer said that nothing of the mail has been written.
    #[must_use]
    pub fn certainly_not_written(&self) -> bool {
        self.0.load(Ordering::Acquire) == NOT_WRITTEN
    }

    /// The handover of the send that this task is in, if anybody watches it. A mailer that writes
    /// in another task (an HTTP body, say) takes it along.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Says that the mail is about to be written.
    pub fn set_written(&self) {
        self.0.store(WRITTEN, Ordering::Release);
    }
}

/// Runs a send whose progress `handover` records.
pub async fn observe<F: Future>(handover: Handover, send: F) -> F::Output {
    CURRENT.scope(handover, send).await
}

/// Said by a mailer that will call [`request_written`] in time: nothing has been written yet.
pub fn request_not_yet_written() {
    let _ = CURRENT.try_with(|handover| {
        let _ = handover
            .0
            .compare_exchange(SILENT, NOT_WRITTEN, Ordering::AcqRel, Ordering::Acquire);
    });
}

/// Said by a mailer just before the first byte of the mail leaves.
pub fn request_written() {
    let _ = CURRENT.try_with(Handover::set_written);
}
