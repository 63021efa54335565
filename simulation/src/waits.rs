//! How long mail waited.

use std::time::Duration;

use crate::mail::Group;

/// The waits of a group of mails: from when a mail came in until the `RESERVE` that let it
/// out was allowed. Its time on the way is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Whose.
    pub group: Group,
    /// How many Graph has.
    pub mails: usize,
    /// Half of them waited no longer.
    pub p50: Duration,
    /// Nine of ten waited no longer.
    pub p90: Duration,
    /// 99 of 100 waited no longer.
    pub p99: Duration,
    /// The longest.
    pub most: Duration,
}

impl Waits {
    /// Of waits in ms, in any order.
    pub(crate) fn of(group: Group, mut waits_ms: Vec<u64>) -> Option<Self> {
        waits_ms.sort_unstable();
        let most = Duration::from_millis(*waits_ms.last()?);
        // The nearest rank: the smallest wait that so many hundredths do not exceed.
        let percentile = |percent: usize| {
            let rank = (waits_ms.len() * percent).div_ceil(100);
            Duration::from_millis(waits_ms[rank.saturating_sub(1)])
        };
        Some(Self {
            group,
            mails: waits_ms.len(),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let waits = Waits::of(Group::Bulk, (1..=200).rev().collect()).unwrap();
        assert_eq!(waits.p50, Duration::from_millis(100));
        assert_eq!(waits.p90, Duration::from_millis(180));
        assert_eq!(waits.p99, Duration::from_millis(198));
        assert_eq!(waits.most, Duration::from_millis(200));
        assert_eq!(Waits::of(Group::Bulk, Vec::new()), None);
    }
}
