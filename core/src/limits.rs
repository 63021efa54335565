//! What a mailbox may use: the operator's override, else the command's wish, else the module's
//! configuration.

use crate::expiry::Lifetime;
use crate::layout::Overrides;
use crate::window::WindowKind;

/// The module's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Messages a minute, from 1.
    pub per_minute: u32,
    /// Recipients a day, from 1.
    pub per_day: u32,
    /// How the windows are cut.
    pub kind: WindowKind,
    /// Whether each denial gets a turn of its own.
    pub pacing: bool,
    /// What bulk mail may use of every window, in hundredths of its limit, from 1 to 100.
    pub bulk_share: u32,
}

impl Default for Config {
    /// 25 messages a minute and 9,000 recipients a day: Microsoft's limits for a mailbox are 30 and
    /// 10,000, and people send from it too.
    fn default() -> Self {
        Self {
            per_minute: 25,
            per_day: 9_000,
            kind: WindowKind::Calendar,
            pacing: true,
            bulk_share: 80,
        }
    }
}

/// The limits that a command asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// Messages a minute, from 1.
    pub per_minute: Option<u32>,
    /// Recipients a day, from 1.
    pub per_day: Option<u32>,
    /// Open reservations at once, from 1 to 1,024. There is no default: only callers that commit
    /// may ask for it.
    pub concurrent: Option<u32>,
}

/// Which mail leaves room for which.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lane {
    /// Mail that somebody waits for.
    #[default]
    Normal,
    /// Mail in bulk: it leaves the last part of every window to other mail, and queues apart.
    Bulk,
}

/// The limits that are in force for one call, of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InForce {
    pub per_minute: u32,
    pub per_day: u32,
    pub concurrent: Option<u32>,
    /// What `per_day` would be without the operator's override.
    pub per_day_without_override: u32,
    /// How long a value with these overrides is kept.
    pub lifetime: Lifetime,
}

impl InForce {
    pub fn of(config: &Config, wish: &Wish, lane: Lane, overrides: Option<&Overrides>) -> Self {
        let by_operator = overrides.map(Overrides::wish).unwrap_or_default();
        let per_minute = wish.per_minute.unwrap_or(config.per_minute);
        let per_day = wish.per_day.unwrap_or(config.per_day);
        let of_lane = |limit: u32| match lane {
            Lane::Normal => limit,
            Lane::Bulk => share(limit, config.bulk_share),
        };
        Self {
            per_minute: of_lane(by_operator.per_minute.unwrap_or(per_minute)),
            per_day: of_lane(by_operator.per_day.unwrap_or(per_day)),
            concurrent: by_operator.concurrent.or(wish.concurrent),
            per_day_without_override: of_lane(per_day),
            lifetime: overrides.map_or(Lifetime::Expires, Overrides::lifetime),
        }
    }
}

/// This many hundredths of a limit, rounded down, at least 1.
fn share(limit: u32, percent: u32) -> u32 {
    let share = u64::from(limit)
        .saturating_mul(percent.into())
        .checked_div(100)
        .unwrap_or_default();
    u32::try_from(share).unwrap_or(limit).max(1)
}
