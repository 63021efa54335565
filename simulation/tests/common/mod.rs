//! What the tests share.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

use mailrl_core::{Config, WindowKind};
use mailrl_simulation::{Report, Scenario, run};

pub const KINDS: [WindowKind; 2] = [WindowKind::Calendar, WindowKind::Rolling];
/// A limit that nobody reaches.
pub const OUT_OF_THE_WAY: u32 = 1_000_000;

/// 10,000 mails wait at the start, 25 a minute, the day out of the way, no spread.
pub fn campaign(kind: WindowKind) -> Scenario {
    Scenario {
        config: Config {
            kind,
            per_day: OUT_OF_THE_WAY,
            ..Config::default()
        },
        ..Scenario::default()
    }
}

/// Runs it, and prints the report for whoever wants the figures (`--nocapture`).
pub fn play(name: &str, scenario: &Scenario) -> Report {
    let report = run(scenario, |_| {}).unwrap();
    println!("## {name}, {}\n{report}\n", scenario.config.kind.name());
    report
}

/// All was sent, with no more calls and in no more time than these.
pub fn assert_drains(report: &Report, most_calls_per_mail: f64, most_percent: f64) {
    assert_eq!(report.sent, report.mails, "{report}");
    assert!(report.calls_per_mail() <= most_calls_per_mail, "{report}");
    assert!(report.drain_percent().unwrap() <= most_percent, "{report}");
}

/// In rolling windows Graph never saw more than the limits of the scenario.
pub fn assert_rolling_holds(report: &Report) {
    let config = report.scenario.config;
    if config.kind == WindowKind::Rolling {
        assert!(report.most_in_60_s() <= config.per_minute.into(), "{report}");
        assert!(report.most_in_24_h() <= config.per_day.into(), "{report}");
    }
}
