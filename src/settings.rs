//! The module's configuration: load arguments, redis.conf, `CONFIG SET`.

use std::ffi::CStr;
use std::sync::atomic::AtomicI64;

use mailrl_core::{Config, WindowKind};

use crate::redis::Loading;
use crate::redis::config::{self, Setting, Values};

const LARGEST_LIMIT: i64 = u32::MAX as i64;
const WINDOW_NAMES: &[&CStr] = &[c"calendar", c"rolling"];
const NO_OR_YES: &[&CStr] = &[c"no", c"yes"];

static PER_MINUTE: Setting = Setting {
    name: c"per-minute",
    values: Values::Range(1, LARGEST_LIMIT),
    value: AtomicI64::new(25),
};
static RECIPIENTS_PER_DAY: Setting = Setting {
    name: c"recipients-per-day",
    values: Values::Range(1, LARGEST_LIMIT),
    value: AtomicI64::new(9_000),
};
static WINDOW: Setting = Setting {
    name: c"window",
    values: Values::Names(WINDOW_NAMES),
    value: AtomicI64::new(0),
};

static PACING: Setting = Setting {
    name: c"pacing",
    values: Values::Names(NO_OR_YES),
    value: AtomicI64::new(1),
};
static BULK_SHARE: Setting = Setting {
    name: c"bulk-share",
    values: Values::Range(1, 100),
    value: AtomicI64::new(80),
};

static ALL: &[&Setting] = &[&PER_MINUTE, &RECIPIENTS_PER_DAY, &WINDOW, &PACING, &BULK_SHARE];

/// What is configured now.
pub fn current() -> Config {
    let number = |setting: &Setting| u32::try_from(setting.get()).unwrap_or(u32::MAX);
    Config {
        per_minute: number(&PER_MINUTE),
        per_day: number(&RECIPIENTS_PER_DAY),
        kind: if WINDOW.get() == 0 {
            WindowKind::Calendar
        } else {
            WindowKind::Rolling
        },
        pacing: PACING.get() != 0,
        bulk_share: number(&BULK_SHARE),
    }
}

/// Registers all settings, with the load arguments (`name value …`) as their defaults; what the
/// server's configuration says goes before them.
pub fn register((context, args): Loading<'_>) -> Result<(), String> {
    let mut defaults: Vec<i64> = ALL.iter().map(|setting| setting.get()).collect();
    let mut given = vec![false; ALL.len()];
    let mut words = (0..args.len()).filter_map(|index| args.get(index));
    while let Some(name) = words.next() {
        let shown = String::from_utf8_lossy(name);
        let place = ALL
            .iter()
            .position(|setting| setting.name.to_bytes().eq_ignore_ascii_case(name));
        let Some(place) = place else {
            return Err(format!("unknown argument '{shown}'; known are {}", names()));
        };
        let (Some(setting), Some(default), Some(given)) =
            (ALL.get(place), defaults.get_mut(place), given.get_mut(place))
        else {
            continue;
        };
        if std::mem::replace(given, true) {
            return Err(format!("argument '{shown}' is given twice"));
        }
        let value = words
            .next()
            .ok_or_else(|| format!("argument '{shown}' lacks its value"))?;
        *default = setting.parse(value).ok_or_else(|| {
            let value = String::from_utf8_lossy(value);
            format!(
                "argument '{shown}' cannot be '{value}'; it is {}",
                describe(setting)
            )
        })?;
    }
    for (setting, default) in ALL.iter().zip(defaults) {
        setting.register(context, default)?;
    }
    config::load(context)
}

fn names() -> String {
    let names: Vec<_> = ALL.iter().map(|setting| setting.name.to_string_lossy()).collect();
    names.join(", ")
}

fn describe(setting: &Setting) -> String {
    match setting.values {
        Values::Range(min, max) => format!("an integer from {min} to {max}"),
        Values::Names(names) => {
            let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
            names.join(" or ")
        }
    }
}
