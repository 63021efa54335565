//! A mailer around a mailer, that asks for the mailbox's budget before each send.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use lettre::address::Envelope;
use lettre::{AsyncTransport, Message};

use crate::decision::{Decision, Denial, DenialReason, Reservation};
use crate::error::{MailRateLimitExceeded, RateLimitedError};
use crate::handover::{Handover, observe};
use crate::lane::Lane;
use crate::outcome::{MailOutcome, SendFailure};
use crate::settle::Settlement;
use crate::{Limits, MailRateLimiter, Mailbox, events};

/// A mailer around a mailer, that keeps each mailbox within its budget; the interface is the same.
///
/// The mailbox is the envelope's sender, the cost its recipients. What a failed send means for the
/// reservation, its error says ([`SendFailure`]):
///
/// | the send | the reservation | the caller gets |
/// | --- | --- | --- |
/// | succeeded | committed | what the mailer answered |
/// | [`NotSent`](MailOutcome::NotSent) | released | [`RateLimitedError::Send`] |
/// | [`Throttled`](MailOutcome::Throttled) | released, and the mailbox paused for everybody | [`RateLimitedError::Exceeded`], reason [`Upstream`](DenialReason::Upstream) |
/// | [`Unknown`](MailOutcome::Unknown) | committed | [`RateLimitedError::Send`] |
/// | dropped before the mail was [handed over](crate::handover) | released | |
/// | dropped later | committed | |
///
/// Without a decision from Redis the mail is sent, and there is nothing to settle. Commits and
/// releases go on in the background; [`shutdown`](AsyncTransport::shutdown) waits for them, as does
/// [`MailRateLimiter::flush`].
#[derive(Debug, Clone)]
pub struct RateLimitedGraphMailer<M> {
    inner: M,
    limiter: MailRateLimiter,
    limits: Limits,
    lane: Option<Lane>,
    concurrency_wait: Duration,
}

impl<M> RateLimitedGraphMailer<M> {
    /// Keeps what `inner` sends within the budgets that `limiter` guards.
    #[must_use]
    pub fn new(inner: M, limiter: MailRateLimiter) -> Self {
        Self {
            inner,
            limiter,
            limits: Limits::default(),
            lane: None,
            concurrency_wait: Duration::from_secs(2),
        }
    }

    /// The limits to ask for; none by default, so that those of the module hold.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sends all mail in this lane; by default each mail says itself which it is
    /// ([`Lane::of_mail`]).
    #[must_use]
    pub fn with_lane(mut self, lane: Lane) -> Self {
        self.lane = Some(lane);
        self
    }

    /// How long a mail waits here for a place among the concurrent sends before it is given back to
    /// the caller; 2 s by default.
    #[must_use]
    pub fn with_concurrency_wait(mut self, wait: Duration) -> Self {
        self.concurrency_wait = wait;
        self
    }

    /// The mailer inside.
    #[must_use]
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The limiter that it asks.
    #[must_use]
    pub fn limiter(&self) -> &MailRateLimiter {
        &self.limiter
    }

    /// Reserves budget, or lets the mail out without (`None`) if Redis gives no decision.
    async fn reserve<E>(
        &self,
        mailbox: &Mailbox,
        recipients: u32,
        lane: Lane,
    ) -> Result<Option<Reservation>, RateLimitedError<E>> {
        let give_up = Instant::now() + self.concurrency_wait;
        loop {
            let decision = self
                .limiter
                .reserve(mailbox, recipients, &self.limits, lane)
                .await;
            if let Decision::Denied(denial) = &decision
                && denial.reason == DenialReason::Concurrent
                && let Some(left) = give_up.checked_duration_since(Instant::now())
                && !left.is_zero()
            {
                tokio::time::sleep(with_jitter(denial.retry_after).min(left)).await;
                continue;
            }
            events::decided(mailbox, recipients, &decision);
            return match decision {
                Decision::Allowed(reservation) => Ok(Some(reservation)),
                Decision::Denied(denial) => Err(MailRateLimitExceeded::from(denial).into()),
                Decision::TooLarge(too_large) => Err(too_large.into()),
                Decision::FailOpen(_) => Ok(None),
            };
        }
    }

    async fn within_budget<F>(
        &self,
        envelope: &Envelope,
        lane: Lane,
        inner_send: impl FnOnce() -> F + Send,
    ) -> Result<M::Ok, RateLimitedError<M::Error>>
    where
        M: AsyncTransport,
        M::Error: SendFailure,
        F: Future<Output = Result<M::Ok, M::Error>> + Send,
    {
        let mailbox = Mailbox::from(envelope.from().ok_or(RateLimitedError::NoSender)?);
        let recipients = u32::try_from(envelope.to().len()).unwrap_or(u32::MAX);
        if recipients == 0 {
            return Err(RateLimitedError::NoRecipients);
        }
        let reservation = self.reserve(&mailbox, recipients, lane).await?;
        let sending = Sending::new(self.limiter.clone(), mailbox, reservation);
        let error = match observe(sending.handover.clone(), inner_send()).await {
            Ok(accepted) => {
                sending.settle(Settlement::Commit);
                return Ok(accepted);
            }
            Err(error) => error,
        };
        match error.mail_outcome() {
            MailOutcome::NotSent => sending.settle(Settlement::Release),
            MailOutcome::Unknown => {
                events::unknown_outcome(&sending.mailbox, &error);
                sending.settle(Settlement::Commit);
            }
            MailOutcome::Throttled { retry_after } => {
                return Err(sending.throttled(retry_after).await.into());
            }
        }
        Err(RateLimitedError::Send(error))
    }
}

#[async_trait]
impl<M> AsyncTransport for RateLimitedGraphMailer<M>
where
    M: AsyncTransport + Send + Sync,
    M::Ok: Send,
    M::Error: SendFailure + Send,
{
    type Ok = M::Ok;
    type Error = RateLimitedError<M::Error>;

    async fn send(&self, message: Message) -> Result<Self::Ok, Self::Error> {
        let envelope = message.envelope().clone();
        let lane = self.lane.unwrap_or_else(|| Lane::of_message(&message));
        self.within_budget(&envelope, lane, || self.inner.send(message))
            .await
    }

    async fn send_raw(&self, envelope: &Envelope, email: &[u8]) -> Result<Self::Ok, Self::Error> {
        let lane = self.lane.unwrap_or_else(|| Lane::of_mail(email));
        self.within_budget(envelope, lane, || self.inner.send_raw(envelope, email))
            .await
    }

    async fn shutdown(&self) {
        self.inner.shutdown().await;
        self.limiter.flush().await;
    }
}

/// A send under way. Dropped without a verdict (its future was dropped, or the mailer panicked), it
/// settles its reservation by how far the mail had come.
struct Sending {
    limiter: MailRateLimiter,
    mailbox: Mailbox,
    reservation: Option<Reservation>,
    handover: Handover,
    has_verdict: bool,
}

impl Sending {
    fn new(limiter: MailRateLimiter, mailbox: Mailbox, reservation: Option<Reservation>) -> Self {
        Self {
            limiter,
            mailbox,
            reservation,
            handover: Handover::default(),
            has_verdict: false,
        }
    }

    fn settle(mut self, settlement: Settlement) {
        self.has_verdict = true;
        self.settle_reservation(settlement);
    }

    async fn throttled(mut self, retry_after: Duration) -> MailRateLimitExceeded {
        self.has_verdict = true;
        let denial = Denial {
            reason: DenialReason::Upstream,
            retry_after,
        };
        events::denied(&self.mailbox, &denial);
        self.limiter
            .throttle(self.mailbox.clone(), self.reservation.take(), retry_after)
            .await;
        denial.into()
    }

    fn settle_reservation(&mut self, settlement: Settlement) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.settle_in_background(reservation, settlement);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.has_verdict {
            return;
        }
        if self.handover.certainly_not_written() {
            self.settle_reservation(Settlement::Release);
        } else {
            events::unknown_outcome(&self.mailbox, &"the send was dropped half way");
            self.settle_reservation(Settlement::Commit);
        }
    }
}

/// A quarter more or less, so that those who wait together do not come back together.
fn with_jitter(wait: Duration) -> Duration {
    wait.mul_f64(rand::random_range(0.75..=1.25))
}
