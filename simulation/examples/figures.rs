//! The figures of the documentation: what pacing and spread cost and what Graph sees, for both window
//! kinds. `cargo run -p mailrl-simulation --example figures`

use std::time::{Duration, Instant};

use mailrl_core::{Config, Lane, WindowKind};
use mailrl_simulation::{Scenario, ScenarioError, Spread, Stream, run};

const OUT_OF_THE_WAY: u32 = 1_000_000;

fn main() -> Result<(), ScenarioError> {
    for kind in [WindowKind::Calendar, WindowKind::Rolling] {
        for (name, scenario) in scenarios(kind) {
            let began = Instant::now();
            let report = run(&scenario, |_| {})?;
            println!("## {name}, {} ({:.1?})\n{report}\n", kind.name(), began.elapsed());
        }
    }
    Ok(())
}

fn scenarios(kind: WindowKind) -> Vec<(&'static str, Scenario)> {
    let with = |config: Config| Scenario {
        config,
        ..Scenario::default()
    };
    let plain = with(Config {
        kind,
        per_day: OUT_OF_THE_WAY,
        ..Config::default()
    });
    let day = Scenario {
        backlog: 2_571,
        recipients: 1..=20,
        ..with(Config {
            kind,
            per_minute: OUT_OF_THE_WAY,
            ..Config::default()
        })
    };
    vec![
        ("10,000 waiting mails, 25 a minute", plain.clone()),
        (
            "the same with the service's spread",
            Scenario {
                spread: Spread::SERVICE,
                ..plain.clone()
            },
        ),
        (
            "the same without pacing",
            Scenario {
                config: Config {
                    pacing: false,
                    ..plain.config
                },
                ..plain.clone()
            },
        ),
        (
            "up to 30 s to Graph, committed then",
            Scenario {
                transit: Duration::ZERO..=Duration::from_secs(30),
                pods: vec![1_000],
                ..plain.clone()
            },
        ),
        ("recipients for three days, from 08:00 UTC", day.clone()),
        (
            "the same with the service's spread",
            Scenario {
                spread: Spread::SERVICE,
                ..day
            },
        ),
        (
            "10,000 in bulk, an urgent mail every 7 min",
            Scenario {
                backlog_bulk_percent: 100,
                urgent_every: Some(Duration::from_mins(7)),
                ..plain.clone()
            },
        ),
        (
            "both limits: 27,000 mails, 9,000 recipients a day",
            Scenario {
                backlog: 27_000,
                config: Config {
                    kind,
                    ..Config::default()
                },
                ..plain.clone()
            },
        ),
        (
            "mail that comes in at 90 % of the limit for a day, nothing waiting",
            Scenario {
                backlog: 0,
                streams: vec![Stream {
                    per_minute: 22.5,
                    lasts: Duration::from_hours(24),
                    lane: Lane::Normal,
                }],
                ..plain
            },
        ),
    ]
}
