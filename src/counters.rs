//! What the module has done since it was loaded, for `INFO mailrl`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use mailrl_core::Reason;

use crate::redis::info::Info;
use crate::settings;

/// A number that only grows.
pub struct Counter {
    field: &'static CStr,
    count: AtomicU64,
}

impl Counter {
    const fn new(field: &'static CStr) -> Self {
        Self {
            field,
            count: AtomicU64::new(0),
        }
    }

    /// Counts one.
    pub fn increment(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

pub static ALLOWED: Counter = Counter::new(c"allowed");
pub static TOO_LARGE: Counter = Counter::new(c"too_large");
pub static RELEASED: Counter = Counter::new(c"released");
pub static COMMITTED: Counter = Counter::new(c"committed");
pub static PAUSED: Counter = Counter::new(c"paused");
pub static ERRORS: Counter = Counter::new(c"errors");
static DENIED_MINUTE: Counter = Counter::new(c"denied_minute");
static DENIED_DAY: Counter = Counter::new(c"denied_day");
static DENIED_CONCURRENT: Counter = Counter::new(c"denied_concurrent");
static DENIED_PAUSED: Counter = Counter::new(c"denied_paused");

static ALL: &[&Counter] = &[
    &ALLOWED,
    &DENIED_MINUTE,
    &DENIED_DAY,
    &DENIED_CONCURRENT,
    &DENIED_PAUSED,
    &TOO_LARGE,
    &RELEASED,
    &COMMITTED,
    &PAUSED,
    &ERRORS,
];

/// The counter of calls that were denied for this reason.
pub fn denied(reason: Reason) -> &'static Counter {
    match reason {
        Reason::Minute => &DENIED_MINUTE,
        Reason::Day => &DENIED_DAY,
        Reason::Concurrent => &DENIED_CONCURRENT,
        Reason::Paused => &DENIED_PAUSED,
    }
}

/// Writes `INFO mailrl`.
pub fn write_info(info: &Info) {
    let config = settings::current();
    info.text(c"version", env!("CARGO_PKG_VERSION"));
    info.text(c"commit", env!("MAILRL_COMMIT"));
    info.text(c"window", config.kind.name());
    info.number(c"per_minute", config.per_minute.into());
    info.number(c"recipients_per_day", config.per_day.into());
    info.text(c"pacing", if config.pacing { "yes" } else { "no" });
    info.number(c"bulk_share", config.bulk_share.into());
    for counter in ALL {
        info.number(counter.field, counter.count.load(Ordering::Relaxed));
    }
    info.text(c"warning", &warning(info));
}

/// What an operator should mend; empty if all is well.
fn warning(info: &Info) -> String {
    match info.of_server(c"memory", c"maxmemory_policy") {
        Some(policy) if policy != "noeviction" => format!(
            "maxmemory-policy {policy} may evict counters, and an evicted mailbox starts with its whole budget; set noeviction"
        ),
        _ => String::new(),
    }
}
