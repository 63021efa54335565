//! What is played around the decision: Graph, the pods, the mails that never go out.

mod common;

use std::time::Duration;

use common::{KINDS, campaign, play};
use mailrl_core::{Config, Lane, WindowKind};
use mailrl_simulation::{Burst, Change, GraphLimits, Planned, Scenario, ScenarioError, Spread, Stream, run};

/// Calendar minutes let more than 30 messages of a burst through at their edge. Graph refuses what is
/// too much, and everybody waits as long as it said.
#[test]
fn what_graph_refuses_pauses_the_mailbox_and_is_sent_later() {
    for kind in KINDS {
        let burst = |after| Burst {
            after: Duration::from_secs(after),
            mails: 25,
            lane: Lane::Normal,
        };
        let scenario = Scenario {
            backlog: 0,
            // The next minute begins 40 s after the start.
            bursts: vec![burst(35), burst(41)],
            graph_limits: Some(GraphLimits::default()),
            ..campaign(kind)
        };
        let report = play("two bursts at the edge of a minute", &scenario);
        assert_eq!(report.sent, 50, "{report}");
        assert!(report.most_in_60_s() <= 30, "{report}");
        let is_calendar = kind == WindowKind::Calendar;
        assert_eq!(report.refused > 0, is_calendar, "{report}");
        assert_eq!(report.released, report.refused);
        assert_eq!(report.denied.paused > 0, is_calendar, "{report}");
    }
}

#[test]
fn a_sender_has_one_mail_at_a_time() {
    for (pods, minutes) in [(vec![1], 20), (vec![1, 1], 10), (vec![3, 1], 5)] {
        let scenario = Scenario {
            backlog: 20,
            pods: pods.clone(),
            transit: Duration::from_secs(20)..=Duration::from_secs(20),
            answer: Duration::from_secs(40)..=Duration::from_secs(40),
            ..campaign(WindowKind::Calendar)
        };
        let report = play("a minute each", &scenario);
        let last = Duration::from_mins(minutes - 1) + Duration::from_secs(20);
        assert_eq!(report.drain(), last, "{pods:?}\n{report}");
    }
}

#[test]
fn a_mail_that_no_day_holds_is_never_sent() {
    let scenario = Scenario {
        backlog: 10,
        recipients: 6..=6,
        config: Config {
            per_day: 5,
            ..Config::default()
        },
        ..Scenario::default()
    };
    let report = play("too large", &scenario);
    assert_eq!((report.sent, report.too_large, report.calls), (0, 10, 10));
    assert_eq!(report.drain_percent(), None);
}

#[test]
fn what_still_waits_when_the_time_is_over_is_left() {
    let scenario = Scenario {
        stops_after: Duration::from_mins(10),
        ..campaign(WindowKind::Calendar)
    };
    let report = play("stopped", &scenario);
    assert_eq!(report.sent + report.left, 10_000);
    assert!((225..=275).contains(&report.sent), "{report}");
}

#[test]
fn the_same_scenario_gives_the_same_report_and_another_seed_another() {
    let with = |seed| {
        let scenario = Scenario {
            backlog: 300,
            seed,
            spread: Spread::SERVICE,
            transit: Duration::ZERO..=Duration::from_secs(3),
            streams: vec![Stream {
                per_minute: 20.0,
                lasts: Duration::from_hours(1),
                lane: Lane::Bulk,
            }],
            ..campaign(WindowKind::Rolling)
        };
        run(&scenario, |_| {}).unwrap().arrivals
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn a_stream_brings_as_many_mails_as_it_says() {
    let scenario = Scenario {
        backlog: 0,
        streams: vec![Stream {
            per_minute: 10.0,
            lasts: Duration::from_hours(10),
            lane: Lane::Normal,
        }],
        ..campaign(WindowKind::Rolling)
    };
    let report = play("ten a minute", &scenario);
    assert!((5_700..=6_300).contains(&report.sent), "{report}");
    assert!(report.calls_per_mail() < 1.05, "{report}");
}

#[test]
fn the_progress_ends_with_all_mails_done() {
    let mut last = None;
    let report = run(&campaign(WindowKind::Calendar), |progress| {
        assert!(
            last.is_none_or(|last: mailrl_simulation::Progress| last.after <= progress.after
                && last.done <= progress.done)
        );
        last = Some(progress);
    });
    let (report, last) = (report.unwrap(), last.unwrap());
    assert_eq!(
        (last.done, last.mails, last.calls),
        (10_000, 10_000, report.calls)
    );
}

#[test]
fn a_scenario_that_cannot_be_played_is_an_error_that_says_why() {
    let error = |change: fn(&mut Scenario)| {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        run(&scenario, |_| {}).map(|_| ()).unwrap_err()
    };
    assert_eq!(error(|s| s.pods = vec![0]), ScenarioError::NoSender);
    assert_eq!(
        error(|s| s.config.per_minute = 0),
        ScenarioError::ZeroLimit("messages a minute")
    );
    assert_eq!(
        error(|s| s.concurrent = Some(0)),
        ScenarioError::ZeroLimit("sends at once")
    );
    assert_eq!(
        error(|s| s.recipients = 0..=3),
        ScenarioError::Range("recipients")
    );
    assert_eq!(
        error(|s| s.backlog_bulk_percent = 101),
        ScenarioError::Percent("the backlog's bulk share")
    );
    assert_eq!(error(|s| s.lease = Duration::ZERO), ScenarioError::Lease);
    assert_eq!(
        error(|s| s.urgent_every = Some(Duration::ZERO)),
        ScenarioError::Urgent
    );
    let nothing_a_day = |s: &mut Scenario| {
        s.changes.push(Planned {
            after: Duration::ZERO,
            change: Change::PerDay(0),
        });
    };
    assert_eq!(
        error(nothing_a_day).to_string(),
        "recipients a day is 0: a limit is at least 1"
    );
}
