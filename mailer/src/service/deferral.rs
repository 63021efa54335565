//! When a message that could not be sent now is sent, and why then.

use std::fmt;
use std::hash::Hasher as _;
use std::time::{Duration, SystemTime};

use fnv::FnvHasher;
use mailrl_client::DenialReason;

use crate::message::MessageId;

/// The most that a message waits beyond what it was told.
pub const MOST_SPREAD: Duration = Duration::from_secs(30);

/// A message that is sent later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// When it is sent again, in full ms: `retry_after` and `spread` from the denial on.
    pub scheduled_on: SystemTime,
    /// Why it could not be sent now.
    pub reason: DeferralReason,
    /// How long it was told to wait.
    pub retry_after: Duration,
    /// How much longer it waits, so that those that were told the same time do not come at once.
    pub spread: Duration,
}

/// Why a message could not be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeferralReason {
    /// Its mailbox has no budget, or its provider asked to wait.
    Denied(DenialReason),
    /// It was tried and certainly not sent, for this reason.
    Failure(String),
    /// It could not be tried, for this reason, which is none of its own.
    Unavailable(String),
}

impl Deferral {
    pub(super) fn new(
        id: &MessageId,
        now: SystemTime,
        retry_after: Duration,
        reason: DeferralReason,
    ) -> Self {
        let spread = spread(id);
        Self {
            scheduled_on: later(now, retry_after + spread),
            reason,
            retry_after,
            spread,
        }
    }
}

impl DeferralReason {
    /// The reason in one word, as it stands in logs and metrics.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Denied(reason) => reason.as_str(),
            Self::Failure(_) => "failure",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl fmt::Display for DeferralReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(reason) => write!(formatter, "{reason}"),
            Self::Failure(error) | Self::Unavailable(error) => write!(formatter, "{error}"),
        }
    }
}

/// The spread of a message, 0 to [`MOST_SPREAD`]: FNV-1a (64 bit) of its id, so the same each time.
#[must_use]
pub fn spread(id: &MessageId) -> Duration {
    let mut hasher = FnvHasher::default();
    hasher.write(id.as_str().as_bytes());
    let most = u64::try_from(MOST_SPREAD.as_millis()).unwrap_or(u64::MAX - 1);
    Duration::from_millis(hasher.finish() % (most + 1))
}

/// Rounded up to full ms: queues and records hold no less, and earlier would be too early.
fn later(now: SystemTime, wait: Duration) -> SystemTime {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + wait;
    let below_a_ms = since.subsec_nanos() % 1_000_000;
    let up = if below_a_ms == 0 {
        0
    } else {
        1_000_000 - below_a_ms
    };
    SystemTime::UNIX_EPOCH + since + Duration::from_nanos(up.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> MessageId {
        id.parse().unwrap()
    }

    #[test]
    fn the_spread_is_fnv_1a_of_the_id_in_ms() {
        // The hashes are those of the FNV authors' test vectors: "a", "foobar".
        for (text, hash) in [
            ("a", 0xaf63_dc4c_8601_ec8c_u64),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(spread(&id(text)), Duration::from_millis(hash % 30_001), "{text}");
        }
    }

    #[test]
    fn many_messages_spread_evenly_over_the_30_s() {
        let mut seconds = [0; 31];
        for n in 0..3000 {
            let spread = spread(&id(&format!("campaign-{n}@example.com")));
            assert!(spread <= MOST_SPREAD);
            seconds[usize::try_from(spread.as_secs()).unwrap()] += 1;
        }
        assert!(
            seconds[..30].iter().all(|&count| (60..=140).contains(&count)),
            "{seconds:?}"
        );
    }

    #[test]
    fn nothing_is_scheduled_before_what_it_was_told() {
        let reason = DeferralReason::Denied(DenialReason::Minute);
        let now = SystemTime::UNIX_EPOCH + Duration::new(1_796_000_000, 123_456_789);
        let told = Duration::new(17, 1);
        let deferral = Deferral::new(&id("foobar"), now, told, reason);
        let wait = deferral.scheduled_on.duration_since(now).unwrap();
        assert!(wait >= told + deferral.spread, "{wait:?}");
        assert!(
            wait < told + deferral.spread + Duration::from_millis(1),
            "{wait:?}"
        );
        let since = deferral
            .scheduled_on
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        assert_eq!(since.subsec_nanos() % 1_000_000, 0);
    }
}
