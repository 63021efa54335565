//! Microsoft's limits of one mailbox, in exact rolling windows.
//!
//! Knows no clock: the time is an argument, counted from any fixed start. Only what was accepted
//! counts. What was accepted at `t` is in the window up to, but not including, `t + length`.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What each mailbox is held to.
///
/// The defaults are Microsoft's: "Exchange Online limits" (sending limits) and "Microsoft Graph
/// service-specific throttling limits" (Outlook service limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Messages in any `message_window` (30).
    pub messages: u64,
    /// How long a message counts (60 s).
    pub message_window: Duration,
    /// Recipients in any `recipient_window` (10,000).
    pub recipients: u64,
    /// How long a recipient counts (24 h).
    pub recipient_window: Duration,
    /// Requests at once (4).
    pub concurrent: u64,
    /// The largest request body in bytes (4 MiB).
    pub request_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 30,
            message_window: Duration::from_mins(1),
            recipients: 10_000,
            recipient_window: Duration::from_hours(24),
            concurrent: 4,
            request_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Which limit a request ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Too many messages in the message window.
    Messages,
    /// Too many recipients in the recipient window.
    Recipients,
    /// Too many requests at once.
    Concurrent,
}

/// A request that was refused, and counts for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttled {
    /// Which limit; the one that keeps the sender waiting longest if there are several.
    pub cause: Cause,
    /// After how long the same request would fit, if nobody else sent.
    pub retry_after: Duration,
}

/// One mailbox: what counts now, and the most that was ever seen.
#[derive(Debug)]
pub struct MailboxThrottle {
    limits: Limits,
    messages: RollingWindow,
    recipients: RollingWindow,
    open_requests: u64,
    most_requests: u64,
}

impl MailboxThrottle {
    /// A mailbox from which nothing was sent yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            messages: RollingWindow::new(limits.message_window),
            recipients: RollingWindow::new(limits.recipient_window),
            open_requests: 0,
            most_requests: 0,
        }
    }

    /// A request begins. One that is let in must [`leave`](Self::leave).
    pub fn enter(&mut self) -> Result<(), Throttled> {
        let open_requests = self.open_requests + 1;
        self.most_requests = self.most_requests.max(open_requests);
        if open_requests > self.limits.concurrent {
            return Err(Throttled {
                cause: Cause::Concurrent,
                retry_after: Duration::from_secs(1),
            });
        }
        self.open_requests = open_requests;
        Ok(())
    }

    /// A request that was let in is over.
    pub fn leave(&mut self) {
        self.open_requests = self.open_requests.saturating_sub(1);
    }

    /// Counts one more message to so many recipients at `now`, if both fit. `now` never decreases.
    pub fn accept(&mut self, now: Duration, recipients: u64) -> Result<(), Throttled> {
        let minute = self.messages.wait(now, 1, self.limits.messages);
        let day = self.recipients.wait(now, recipients, self.limits.recipients);
        if let Some(retry_after) = day.max(minute) {
            let cause = if day >= minute {
                Cause::Recipients
            } else {
                Cause::Messages
            };
            return Err(Throttled { cause, retry_after });
        }
        self.messages.add(now, 1);
        self.recipients.add(now, recipients);
        Ok(())
    }

    /// The most messages that were ever accepted within one message window.
    #[must_use]
    pub fn most_messages(&self) -> u64 {
        self.messages.most
    }

    /// The most recipients that were ever accepted within one recipient window.
    #[must_use]
    pub fn most_recipients(&self) -> u64 {
        self.recipients.most
    }

    /// The most requests that were ever open at once, the one that was refused for it included.
    #[must_use]
    pub fn most_requests(&self) -> u64 {
        self.most_requests
    }
}

#[derive(Debug)]
struct RollingWindow {
    length: Duration,
    /// Until when it counts, and how much.
    counted: VecDeque<(Duration, u64)>,
    used: u64,
    most: u64,
}

impl RollingWindow {
    fn new(length: Duration) -> Self {
        Self {
            length,
            counted: VecDeque::new(),
            used: 0,
            most: 0,
        }
    }

    /// How long until `amount` fits under `limit`; nothing if it fits now.
    fn wait(&mut self, now: Duration, amount: u64, limit: u64) -> Option<Duration> {
        self.forget_until(now);
        let mut over = self
            .used
            .saturating_add(amount)
            .checked_sub(limit)
            .filter(|over| *over > 0)?;
        for &(until, counted) in &self.counted {
            over = over.saturating_sub(counted);
            if over == 0 {
                return Some(until.saturating_sub(now));
            }
        }
        Some(self.length)
    }

    fn add(&mut self, now: Duration, amount: u64) {
        self.forget_until(now);
        self.counted.push_back((now.saturating_add(self.length), amount));
        self.used += amount;
        self.most = self.most.max(self.used);
    }

    fn forget_until(&mut self, now: Duration) {
        while let Some(&(until, amount)) = self.counted.front()
            && until <= now
        {
            self.counted.pop_front();
            self.used -= amount;
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::unchecked_time_subtraction,
    reason = "an underflow would fail the test"
)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const DAY: Duration = Duration::from_hours(24);
    const TICK: Duration = Duration::from_nanos(1);

    fn throttled(cause: Cause, retry_after: Duration) -> Result<(), Throttled> {
        Err(Throttled { cause, retry_after })
    }

    #[test]
    fn the_31st_message_waits_until_the_first_is_60_seconds_old_to_the_nanosecond() {
        let mut mailbox = MailboxThrottle::new(Limits::default());
        let first = Duration::from_millis(59_500);
        mailbox.accept(first, 1).unwrap();
        for _ in 1..30 {
            mailbox.accept(MINUTE, 1).unwrap();
        }
        let wait = first + MINUTE - MINUTE;
        assert_eq!(mailbox.accept(MINUTE, 1), throttled(Cause::Messages, wait));
        assert_eq!(
            mailbox.accept(first + MINUTE - TICK, 1),
            throttled(Cause::Messages, TICK)
        );
        assert_eq!(mailbox.accept(first + MINUTE, 1), Ok(()));
        assert_eq!(mailbox.most_messages(), 30);
    }

    #[test]
    fn the_10_001st_recipient_waits_until_enough_are_24_hours_old() {
        let mut mailbox = MailboxThrottle::new(Limits::default());
        mailbox.accept(Duration::ZERO, 4_000).unwrap();
        mailbox.accept(MINUTE, 4_000).unwrap();
        mailbox.accept(2 * MINUTE, 2_000).unwrap();
        let now = 3 * MINUTE;
        assert_eq!(mailbox.accept(now, 1), throttled(Cause::Recipients, DAY - now));
        assert_eq!(
            mailbox.accept(now, 4_001),
            throttled(Cause::Recipients, DAY + MINUTE - now)
        );
        assert_eq!(
            mailbox.accept(DAY - TICK, 4_000),
            throttled(Cause::Recipients, TICK)
        );
        assert_eq!(mailbox.accept(DAY, 4_000), Ok(()));
        assert_eq!(mailbox.accept(DAY, 1), throttled(Cause::Recipients, MINUTE));
        assert_eq!(mailbox.most_recipients(), 10_000);
    }

    #[test]
    fn what_is_refused_counts_for_nothing() {
        let limits = Limits {
            messages: 2,
            recipients: 5,
            ..Limits::default()
        };
        let mut mailbox = MailboxThrottle::new(limits);
        for _ in 0..10 {
            assert_eq!(
                mailbox.accept(Duration::ZERO, 6),
                throttled(Cause::Recipients, DAY)
            );
        }
        assert_eq!(mailbox.accept(Duration::ZERO, 5), Ok(()));
        assert_eq!(mailbox.most_messages(), 1);
        assert_eq!(mailbox.most_recipients(), 5);
    }

    #[test]
    fn of_two_reasons_the_longer_wait_is_given() {
        let limits = Limits {
            messages: 1,
            recipients: 1,
            ..Limits::default()
        };
        let mut mailbox = MailboxThrottle::new(limits);
        mailbox.accept(Duration::ZERO, 1).unwrap();
        assert_eq!(
            mailbox.accept(MINUTE / 2, 1),
            throttled(Cause::Recipients, DAY - MINUTE / 2)
        );
        assert_eq!(
            mailbox.accept(DAY - MINUTE / 2, 1),
            throttled(Cause::Recipients, MINUTE / 2)
        );
    }

    #[test]
    fn the_fifth_request_at_once_is_refused_and_the_next_after_one_left_is_not() {
        let mut mailbox = MailboxThrottle::new(Limits::default());
        for _ in 0..4 {
            mailbox.enter().unwrap();
        }
        for _ in 0..3 {
            assert_eq!(
                mailbox.enter().map_err(|throttled| throttled.cause),
                Err(Cause::Concurrent)
            );
        }
        mailbox.leave();
        assert_eq!(mailbox.enter(), Ok(()));
        assert_eq!(mailbox.most_requests(), 5);
    }

    #[test]
    fn no_window_of_any_alignment_ever_holds_more_than_the_limit() {
        let mut mailbox = MailboxThrottle::new(Limits {
            messages: 7,
            ..Limits::default()
        });
        let mut accepted = Vec::new();
        let mut step = 1_u64;
        let mut now = Duration::ZERO;
        for _ in 0..5_000 {
            step = step
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            now += Duration::from_millis((step >> 33) % 9_000);
            if mailbox.accept(now, 0).is_ok() {
                accepted.push(now);
            }
        }
        let most = accepted
            .iter()
            .map(|end| {
                accepted
                    .iter()
                    .filter(|at| **at <= *end && **at + MINUTE > *end)
                    .count()
            })
            .max();
        assert_eq!(most, Some(7));
        assert_eq!(mailbox.most_messages(), 7);
    }
}
