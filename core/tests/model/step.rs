//! What happens to a mailbox, one after another.

use mailrl_core::{Lane, Override, WindowKind};

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Reserve {
        recipients: u32,
        per_minute: Option<u32>,
        per_day: Option<u32>,
        concurrent: Option<u32>,
        lane: Lane,
        lease_ms: u32,
    },
    /// So many reservations at one moment, as far as the operator's limits let them through; each has
    /// this lease, in ms.
    Burst(u16, u32),
    /// Of the reservation with this number among those that were made, counted round and round.
    Release(usize),
    Commit(usize),
    /// For so many ms.
    Pause(u32),
    /// The clock goes on, in ms.
    Forward(u64),
    /// The clock steps back, in ms.
    Back(u64),
    Switch(WindowKind),
    /// Of the configuration: messages a minute, recipients a day.
    Limits(u32, u32),
    Override(Override),
}
