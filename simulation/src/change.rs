//! The configuration changes under way (`CONFIG SET`).

use std::time::Duration;

use mailrl_core::{Config, WindowKind};

/// A change of the module's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Messages a minute, from 1.
    PerMinute(u32),
    /// Recipients a day, from 1.
    PerDay(u32),
    /// How the windows are cut.
    Kind(WindowKind),
    /// Whether each denial gets a turn of its own.
    Pacing(bool),
}

/// A change at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// When, from the start.
    pub after: Duration,
    /// What.
    pub change: Change,
}

impl Change {
    pub(crate) fn apply(self, config: &mut Config) {
        match self {
            Self::PerMinute(limit) => config.per_minute = limit,
            Self::PerDay(limit) => config.per_day = limit,
            Self::Kind(kind) => config.kind = kind,
            Self::Pacing(pacing) => config.pacing = pacing,
        }
    }
}
