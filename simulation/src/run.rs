//! Plays a scenario to its end.

use std::time::Duration;

use crate::ideal::ideal;
use crate::mail::{Group, State, ms};
use crate::report::Report;
use crate::scenario::{Scenario, ScenarioError};
use crate::waits::Waits;
use crate::world::World;

/// How often the caller hears of the progress: once in so many events.
const EVENTS_A_REPORT: u64 = 4_096;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The virtual time, from the start.
    pub after: Duration,
    /// `RESERVE` calls so far.
    pub calls: u64,
    /// Mails that Graph has, or that will never be sent.
    pub done: usize,
    /// Mails that came in or will, as far as is known.
    pub mails: usize,
}

/// Plays a scenario until no mail is left or its time is over. `progress` is called every few
/// thousand events and at the end.
///
/// # Errors
/// If the scenario cannot be played.
pub fn run(scenario: &Scenario, mut progress: impl FnMut(Progress)) -> Result<Report, ScenarioError> {
    scenario.check()?;
    let mut world = World::of(scenario);
    let ends_at = scenario.starts_at_ms.saturating_add(ms(scenario.stops_after));
    let mut events = 0_u64;
    let mut last = scenario.starts_at_ms;
    while let Some((now, event)) = world.events.next() {
        if now > ends_at {
            break;
        }
        last = now;
        world.happen(event, now)?;
        events += 1;
        if events.is_multiple_of(EVENTS_A_REPORT) {
            progress(how_far(&world, now));
        }
    }
    progress(how_far(&world, last));
    Ok(report(world))
}

fn how_far(world: &World<'_>, now: u64) -> Progress {
    Progress {
        after: Duration::from_millis(world.after_ms(now)),
        calls: world.tally.calls,
        done: world.mails.len() - world.open,
        mails: world.mails.len(),
    }
}

fn report(world: World<'_>) -> Report {
    let scenario = world.scenario;
    let start = scenario.starts_at_ms;
    let mut sent: Vec<_> = world
        .mails
        .iter()
        .filter(|mail| mail.state == State::Sent)
        .copied()
        .collect();
    sent.sort_by_key(|mail| mail.wanted_at);
    let mut changes: Vec<_> = scenario
        .changes
        .iter()
        .map(|planned| (start + ms(planned.after), planned.change))
        .collect();
    changes.sort_by_key(|(at, _)| *at);
    let ideal: Vec<_> = ideal(&sent, scenario.config, &changes)
        .into_iter()
        .map(|at| Duration::from_millis(at.saturating_sub(start)))
        .collect();
    let waits = Group::ALL
        .iter()
        .filter_map(|group| Waits::of(*group, world.tally.waits(*group)))
        .collect();
    let tally = world.tally;
    Report {
        scenario: scenario.clone(),
        mails: world.mails.len(),
        sent: sent.len(),
        called_off: tally.called_off,
        too_large: tally.too_large,
        left: world.open,
        calls: tally.calls,
        denied: tally.denied,
        committed: tally.committed,
        released: tally.released,
        refused: world.graph.refused,
        waits,
        arrivals: world.graph.arrivals,
        ideal,
        minutes: tally.minutes,
    }
}
