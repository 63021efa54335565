//! Who is denied and waits exactly as long as told is allowed, whatever happened before.

mod common;

use common::KINDS;
use mailrl_core::{
    Config, Lane, Reason, Request, Verdict, WindowKind, Wish, commit, pause, release, reserve,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const START: u64 = 1_800_000_020_000;

/// One mailbox that is used at random.
struct Mailbox {
    value: Vec<u8>,
    config: Config,
    now: u64,
    rng: StdRng,
}

impl Mailbox {
    fn ask(&mut self) -> (Request, Verdict) {
        let request = Request {
            recipients: self.rng.random_range(1..=30),
            wish: Wish::default(),
            lane: [Lane::Normal, Lane::Bulk][self.rng.random_range(0..2)],
            lease_ms: self.rng.random_range(1..=120_000),
        };
        let verdict = reserve(&mut self.value, &self.config, &request, self.now)
            .unwrap()
            .verdict;
        (request, verdict)
    }

    fn step(&mut self) -> (Request, Verdict) {
        let kind: WindowKind = self.config.kind;
        self.now += match self.rng.random_range(0..1_000) {
            0 => self.rng.random_range(0..86_400_000),
            1..10 => self.rng.random_range(0..120_000),
            _ => self.rng.random_range(0..700),
        };
        if self.rng.random_range(0..500) == 0 {
            pause(&mut self.value, kind, self.rng.random_range(0..100_000), self.now).unwrap();
        }
        let (request, verdict) = self.ask();
        if let Verdict::Allowed(id) = verdict {
            let later = self.now + self.rng.random_range(0..2_000);
            match self.rng.random_range(0..4) {
                0 => drop(release(&mut self.value, kind, id, later).unwrap()),
                1 => drop(commit(&mut self.value, kind, id, later).unwrap()),
                _ => return (request, verdict),
            }
            self.now = later;
        }
        (request, verdict)
    }
}

#[test]
fn whoever_waits_exactly_as_long_as_told_is_allowed_if_nobody_else_comes() {
    for kind in KINDS {
        let mut denials = [0; 3];
        for seed in 0..40 {
            let mut mailbox = Mailbox {
                value: Vec::new(),
                config: Config {
                    kind,
                    // Half of them run into the day, the others into the minute.
                    per_day: if seed % 2 == 0 { 1_000 } else { 1_000_000 },
                    ..Config::default()
                },
                now: START,
                rng: StdRng::seed_from_u64(seed),
            };
            for _ in 0..1_500 {
                let (request, verdict) = mailbox.step();
                let Verdict::Denied {
                    reason,
                    retry_after_ms,
                } = verdict
                else {
                    continue;
                };
                denials[match reason {
                    Reason::Minute => 0,
                    Reason::Day => 1,
                    _ => 2,
                }] += 1;
                let mut alone = mailbox.value.clone();
                let then = mailbox.now + retry_after_ms;
                let verdict = reserve(&mut alone, &mailbox.config, &request, then)
                    .unwrap()
                    .verdict;
                assert!(
                    matches!(verdict, Verdict::Allowed(_)),
                    "{reason:?}, {retry_after_ms} ms, then {verdict:?}"
                );
            }
        }
        println!("{}: minute, day, paused {denials:?}", kind.name());
        assert!(denials.iter().all(|count| *count > 100), "{denials:?}");
    }
}
