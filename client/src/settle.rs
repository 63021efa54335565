//! Commits, releases and pauses that go on in the background, so that no mail waits for them.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::cause::FailOpenCause;
use crate::decision::Reservation;
use crate::{MailRateLimiter, Mailbox};

/// How often a settlement is tried before the lease has to end the reservation.
const ATTEMPTS: u32 = 4;

/// Long enough for the breaker to let another question through.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What becomes of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settlement {
    Commit,
    Release,
}

impl MailRateLimiter {
    /// Settles a reservation behind the caller's back. Outside a runtime its lease has to end it.
    pub(crate) fn settle_in_background(&self, reservation: Reservation, settlement: Settlement) {
        let limiter = self.clone();
        self.in_background(async move { limiter.settle(&reservation, settlement).await });
    }

    /// Pauses the mailbox and then gives the reservation back, in this order: nobody may see the
    /// room without the pause. The caller waits for the pause alone, so that its own next mail
    /// finds it, and both go on if the caller is dropped.
    pub(crate) async fn throttle(
        &self,
        mailbox: Mailbox,
        reservation: Option<Reservation>,
        retry_after: Duration,
    ) {
        let (paused, until_paused) = oneshot::channel();
        let limiter = self.clone();
        self.in_background(async move {
            // A pause that fails is logged, and is not tried again: whoever sends meanwhile is told
            // to wait by the provider itself.
            let _ = limiter.pause(&mailbox, retry_after).await;
            let _ = paused.send(());
            if let Some(reservation) = reservation {
                limiter.settle(&reservation, Settlement::Release).await;
            }
        });
        let _ = until_paused.await;
    }

    /// Both settlements can be repeated: Redis takes each reservation's first one only.
    async fn settle(&self, reservation: &Reservation, settlement: Settlement) {
        for attempt in 1..=ATTEMPTS {
            let settled = match settlement {
                Settlement::Commit => self.commit(reservation).await,
                Settlement::Release => self.release(reservation).await,
            };
            if attempt == ATTEMPTS || !settled.is_err_and(FailOpenCause::is_server_wide) {
                return;
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let unsettled = Unsettled::new(self.unsettled().clone());
        runtime.spawn(async move {
            let _unsettled = unsettled;
            work.await;
        });
    }
}

/// Counts as one settlement under way for as long as it lives, also when its runtime ends.
struct Unsettled(watch::Sender<usize>);

impl Unsettled {
    fn new(count: watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
