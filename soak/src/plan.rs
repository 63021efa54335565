//! What goes wrong when: a pure function of the seed and the length of the run.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::mailboxes::MAILBOXES;

/// Who is struck. Faults of one track come one after the other, those of different tracks at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Track {
    Redis,
    Workers,
    Graph,
    Operator,
}

pub const TRACKS: [Track; 4] = [Track::Redis, Track::Workers, Track::Graph, Track::Operator];

/// One thing that goes wrong, or that an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    KillRedis,
    FreezeRedis,
    KillWorker { draw: usize },
    GraphThrottles,
    GraphIsUnavailable,
    GraphIsSlow,
    GraphLosesAnswers,
    Pause { mailbox: &'static str },
    Limit { mailbox: &'static str, per_minute: u32 },
}

/// A fault and when it holds, from the start of the run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    pub track: Track,
    pub fault: Fault,
    pub at: Duration,
    pub length: Duration,
}

/// How a track goes: how long it is quiet and how long a fault holds, in ms.
struct Rhythm {
    quiet: std::ops::RangeInclusive<u64>,
    fault: std::ops::RangeInclusive<u64>,
}

impl Track {
    fn rhythm(self) -> Rhythm {
        let (quiet, fault) = match self {
            Self::Redis => (8_000..=28_000, 300..=4_000),
            Self::Workers => (8_000..=30_000, 100..=5_000),
            Self::Graph => (3_000..=12_000, 3_000..=8_000),
            Self::Operator => (4_000..=12_000, 4_000..=14_000),
        };
        Rhythm { quiet, fault }
    }

    fn faults(self, random: &mut StdRng) -> Vec<Fault> {
        let mut mailbox = || MAILBOXES[random.random_range(0..MAILBOXES.len())].name;
        let mut faults = match self {
            Self::Redis => vec![Fault::KillRedis, Fault::FreezeRedis],
            Self::Workers => vec![Fault::KillWorker {
                draw: random.random_range(0..1_000),
            }],
            Self::Graph => vec![
                Fault::GraphThrottles,
                Fault::GraphIsUnavailable,
                Fault::GraphIsSlow,
                Fault::GraphLosesAnswers,
            ],
            Self::Operator => vec![
                Fault::Pause { mailbox: mailbox() },
                Fault::Limit {
                    mailbox: mailbox(),
                    per_minute: random.random_range(30..=85),
                },
            ],
        };
        faults.shuffle(random);
        faults
    }
}

/// The faults of a run, by when they begin. They end in its first four fifths, so that what they leave
/// behind comes to its end soon after it.
pub fn draw(seed: u64, minutes: u32) -> Vec<Planned> {
    let end = Duration::from_secs(u64::from(minutes) * 48);
    let mut plan = Vec::new();
    for (track, number) in TRACKS.into_iter().zip(0_u64..) {
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(4).wrapping_add(number));
        let rhythm = track.rhythm();
        let mut at = Duration::ZERO;
        'track: loop {
            for fault in track.faults(&mut random) {
                at += Duration::from_millis(random.random_range(rhythm.quiet.clone()));
                let length = Duration::from_millis(random.random_range(rhythm.fault.clone()));
                if at + length > end {
                    break 'track;
                }
                plan.push(Planned {
                    track,
                    fault,
                    at,
                    length,
                });
                at += length;
            }
        }
    }
    plan.sort_by_key(|planned| planned.at);
    plan
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_plan_and_another_seed_another() {
        assert_eq!(draw(7, 5), draw(7, 5));
        assert_ne!(draw(7, 5), draw(8, 5));
    }

    #[test]
    fn the_shortest_run_has_every_kind_of_fault() {
        for seed in 0..500 {
            let plan = draw(seed, 2);
            let kinds: HashSet<_> = plan.iter().map(|planned| discriminant(&planned.fault)).collect();
            assert_eq!(kinds.len(), 9, "seed {seed}: {plan:?}");
        }
    }

    #[test]
    fn faults_come_in_order_end_in_time_and_do_not_overlap_on_their_track() {
        for (seed, minutes) in (0..100).flat_map(|seed| [(seed, 2), (seed, 15)]) {
            let plan = draw(seed, minutes);
            assert!(plan.is_sorted_by_key(|planned| planned.at));
            for track in TRACKS {
                let mut free = Duration::ZERO;
                for planned in plan.iter().filter(|planned| planned.track == track) {
                    assert!(planned.at >= free, "seed {seed}: {planned:?}");
                    free = planned.at + planned.length;
                }
                assert!(free <= Duration::from_secs(u64::from(minutes) * 48));
            }
        }
    }
}
