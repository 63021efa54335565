//! What a worker has done so far.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::service::{DeferralReason, Delivery, DeliveryError};

/// What a worker has done so far: how often each thing came of a visit of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Messages that the provider accepted.
    pub sent: u64,
    /// Put off, since their mailbox had no budget.
    pub deferred: u64,
    /// Put off, since they could not be sent or not even be tried.
    pub retried: u64,
    /// Not sent, and will not be.
    pub failed: u64,
    /// May have been sent: a person decides.
    pub unknown: u64,
}

/// Counts into a [`Summary`].
#[derive(Debug, Default)]
pub(super) struct Tally {
    sent: AtomicU64,
    deferred: AtomicU64,
    retried: AtomicU64,
    failed: AtomicU64,
    unknown: AtomicU64,
}

impl Tally {
    pub(super) fn count(&self, came_to: &Result<Delivery, DeliveryError>) {
        let counter = match came_to {
            Ok(Delivery::Sent) => &self.sent,
            Ok(Delivery::Scheduled(deferral)) => match deferral.reason {
                DeferralReason::Denied(_) => &self.deferred,
                DeferralReason::Failure(_) | DeferralReason::Unavailable(_) => &self.retried,
            },
            Err(DeliveryError::Failed(_)) => &self.failed,
            Err(DeliveryError::Unknown(_)) => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Summary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            sent: read(&self.sent),
            deferred: read(&self.deferred),
            retried: read(&self.retried),
            failed: read(&self.failed),
            unknown: read(&self.unknown),
        }
    }
}
