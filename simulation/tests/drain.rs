//! What it costs to drain a campaign.

mod common;

use std::time::Duration;

use common::{KINDS, OUT_OF_THE_WAY, assert_drains, assert_rolling_holds, campaign, play};
use mailrl_core::{Config, WindowKind};
use mailrl_simulation::{Scenario, Spread, SpreadBy};

#[test]
fn ten_thousand_mails_take_two_calls_each_and_hardly_longer_than_they_must() {
    for kind in KINDS {
        let report = play("10,000 waiting", &campaign(kind));
        assert_drains(&report, 2.1, 103.0);
        assert_rolling_holds(&report);
    }
}

#[test]
fn the_spread_of_the_service_costs_little() {
    for kind in KINDS {
        for seed in 0..3 {
            let scenario = Scenario {
                spread: Spread::SERVICE,
                seed,
                ..campaign(kind)
            };
            let report = play("spread by message id", &scenario);
            assert_drains(&report, 2.3, 115.0);
            assert_rolling_holds(&report);
        }
    }
}

#[test]
fn a_spread_by_chance_costs_as_much() {
    for kind in KINDS {
        let scenario = Scenario {
            spread: Spread {
                by: SpreadBy::Chance,
                ..Spread::SERVICE
            },
            ..campaign(kind)
        };
        assert_drains(&play("spread by chance", &scenario), 2.3, 115.0);
    }
}

#[test]
fn without_pacing_all_who_wait_ask_in_every_minute() {
    let mut scenario = campaign(WindowKind::Calendar);
    scenario.config.pacing = false;
    let report = play("no pacing", &scenario);
    assert_drains(&report, 201.0, 100.0);
    assert!(report.calls_per_mail() >= 199.0, "{report}");
}

/// A tenth of the mails is a tenth of the calls.
#[test]
fn without_pacing_rolling_windows_are_no_better() {
    let mut scenario = campaign(WindowKind::Rolling);
    scenario.config.pacing = false;
    scenario.backlog = 1_000;
    let report = play("no pacing, 1,000 waiting", &scenario);
    assert_drains(&report, 21.0, 102.0);
    assert!(report.calls_per_mail() >= 19.9, "{report}");
}

/// A mail counts from its `RESERVE` until a window after its `COMMIT`, so that up to 30 s on the way
/// cost some of the window.
#[test]
fn mail_that_is_long_on_its_way_never_makes_too_much_of_any_60_seconds() {
    for kind in KINDS {
        for seed in 0..3 {
            let scenario = Scenario {
                transit: Duration::ZERO..=Duration::from_secs(30),
                pods: vec![50; 2],
                seed,
                ..campaign(kind)
            };
            let report = play("up to 30 s on the way", &scenario);
            assert_drains(&report, 2.5, 140.0);
            assert_rolling_holds(&report);
            assert_eq!(report.committed, 10_000);
        }
    }
}

/// A Saturday, 00:00 UTC.
const MIDNIGHT: u64 = 1_800_057_600_000;

/// 27,000 recipients wait at the start of a UTC day.
fn three_days(kind: WindowKind) -> Scenario {
    let config = Config {
        kind,
        per_minute: OUT_OF_THE_WAY,
        ..Config::default()
    };
    Scenario {
        starts_at_ms: MIDNIGHT + 20_000,
        config,
        backlog: 2_571,
        recipients: 1..=20,
        ..Scenario::default()
    }
}

#[test]
fn recipients_for_three_days_take_three_windows() {
    for spread in [Spread::NONE, Spread::SERVICE] {
        for kind in KINDS {
            let scenario = Scenario {
                spread,
                ..three_days(kind)
            };
            let report = play("recipients for three days", &scenario);
            assert_drains(&report, 2.3, 105.0);
            assert_rolling_holds(&report);
        }
    }
}

#[test]
fn rolling_days_drain_alike_at_any_hour() {
    for hours in [6, 12, 18] {
        let mut scenario = three_days(WindowKind::Rolling);
        scenario.starts_at_ms += hours * 3_600_000;
        let report = play("recipients for three days", &scenario);
        assert_drains(&report, 2.3, 105.0);
        assert_rolling_holds(&report);
    }
}

/// A calendar day opens all at once at midnight, but turns are spread over it: a campaign that begins
/// late in a day is done up to a day later than it might be.
#[test]
fn calendar_days_cost_a_day_more_than_the_ideal_at_most() {
    for hours in [6, 12, 18, 22] {
        let mut scenario = three_days(WindowKind::Calendar);
        scenario.starts_at_ms += hours * 3_600_000;
        let report = play("recipients for three days", &scenario);
        assert_drains(&report, 2.3, 200.0);
        assert!(
            report.drain() <= report.ideal_drain() + Duration::from_hours(25),
            "{report}"
        );
    }
}

/// At the start all are due at once and most of them find the three places taken: one call more each.
#[test]
fn two_pods_with_three_sends_at_once_drain_as_fast() {
    for kind in KINDS {
        let scenario = Scenario {
            concurrent: Some(3),
            pods: vec![3, 3],
            transit: Duration::from_millis(50)..=Duration::from_millis(800),
            answer: Duration::from_millis(20)..=Duration::from_millis(200),
            spread: Spread::SERVICE,
            backlog: 2_000,
            ..campaign(kind)
        };
        let report = play("two pods, three at once", &scenario);
        assert_drains(&report, 3.5, 115.0);
        assert_rolling_holds(&report);
    }
}
