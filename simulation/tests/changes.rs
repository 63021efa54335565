//! Limits and window kind change while a campaign is under way.

mod common;

use std::time::Duration;

use common::{KINDS, campaign, play};
use mailrl_core::WindowKind;
use mailrl_simulation::{Change, Planned, Report, Scenario};

fn with(kind: WindowKind, changes: &[(u64, Change)]) -> Scenario {
    let planned = |&(minutes, change)| Planned {
        // Not at the edge of a minute.
        after: Duration::from_mins(minutes) + Duration::from_millis(17_300),
        change,
    };
    Scenario {
        backlog: 2_000,
        changes: changes.iter().map(planned).collect(),
        ..campaign(kind)
    }
}

/// No mail reached Graph that made more of any 60 s than the limit that was then in force.
fn assert_never_over(report: &Report, from: Duration) {
    for arrival in report.arrivals.iter().filter(|arrival| arrival.after >= from) {
        let mut limit = report.scenario.config.per_minute;
        for planned in &report.scenario.changes {
            if let (Change::PerMinute(per_minute), true) = (planned.change, planned.after <= arrival.after) {
                limit = per_minute;
            }
        }
        assert!(
            arrival.in_60_s <= limit.into(),
            "{arrival:?}, limit {limit}\n{report}"
        );
    }
}

#[test]
fn a_limit_that_is_lowered_and_raised_is_held_and_the_campaign_drains() {
    let lowered = [(10, Change::PerMinute(5))];
    let raised = [(10, Change::PerMinute(60))];
    let both = [
        (5, Change::PerMinute(3)),
        (25, Change::PerMinute(40)),
        (35, Change::PerMinute(20)),
    ];
    for kind in KINDS {
        for changes in [&lowered[..], &raised[..], &both[..]] {
            let report = play("limits change", &with(kind, changes));
            assert_eq!(report.sent, 2_000);
            if kind == WindowKind::Rolling {
                assert_never_over(&report, Duration::ZERO);
            }
        }
    }
}

#[test]
fn a_window_kind_that_is_switched_frees_no_budget_and_the_campaign_drains() {
    let to = |minutes, kind| (minutes, Change::Kind(kind));
    let report = play(
        "to rolling",
        &with(WindowKind::Calendar, &[to(10, WindowKind::Rolling)]),
    );
    assert_eq!(report.sent, 2_000);
    // What a calendar minute let through at its edge has left a minute after the switch.
    assert_never_over(&report, Duration::from_secs(10 * 60 + 17 + 61));

    let report = play(
        "to calendar",
        &with(WindowKind::Rolling, &[to(10, WindowKind::Calendar)]),
    );
    assert_eq!(report.sent, 2_000);

    let changes = [
        to(5, WindowKind::Calendar),
        to(10, WindowKind::Rolling),
        to(15, WindowKind::Calendar),
        to(20, WindowKind::Rolling),
    ];
    let report = play("to and fro", &with(WindowKind::Rolling, &changes));
    assert_eq!(report.sent, 2_000);
    assert_never_over(&report, Duration::from_secs(20 * 60 + 17 + 61));
}
