//! Times and durations as records, jobs and logs hold them: in whole ms.

use std::time::{Duration, SystemTime};

/// A time in ms since 1970.
pub(crate) fn ms(time: SystemTime) -> u64 {
    whole_ms(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// A duration in full ms.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The time so many ms after 1970.
pub(crate) fn time(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

/// The time now, in ms since 1970.
pub(crate) fn now_ms() -> u64 {
    ms(SystemTime::now())
}
