//! Mail that somebody waits for, while a campaign is under way.

mod common;

use std::time::Duration;

use common::{KINDS, assert_drains, assert_rolling_holds, campaign, play};
use mailrl_core::{Lane, WindowKind};
use mailrl_simulation::{Burst, Group, Report, Scenario, Stream, Waits};

fn bulk_campaign(kind: WindowKind) -> Scenario {
    Scenario {
        backlog_bulk_percent: 100,
        ..campaign(kind)
    }
}

fn waits(report: &Report, group: Group) -> &Waits {
    report.waits.iter().find(|waits| waits.group == group).unwrap()
}

fn window(kind: WindowKind) -> Duration {
    Duration::from_millis(kind.minute().slot_ms * u64::from(kind.minute().slots))
}

#[test]
fn an_urgent_mail_goes_at_once_while_the_last_fifth_of_the_window_is_free() {
    for kind in KINDS {
        let scenario = Scenario {
            urgent_every: Some(Duration::from_mins(7)),
            ..bulk_campaign(kind)
        };
        let report = play("bulk, an urgent mail every 7 min", &scenario);
        assert!(waits(&report, Group::Urgent).mails >= 70);
        assert_eq!(waits(&report, Group::Urgent).most, Duration::ZERO);
        assert_drains(&report, 2.1, 103.0);
        assert_rolling_holds(&report);
    }
}

#[test]
fn an_urgent_mail_waits_no_longer_than_a_window_when_others_took_the_last_fifth() {
    for kind in KINDS {
        let mut longest = Duration::ZERO;
        for after_s in [600, 617, 637, 659] {
            let after = Duration::from_secs(after_s);
            let normal = |after, mails| Burst {
                after,
                mails,
                lane: Lane::Normal,
            };
            let scenario = Scenario {
                backlog: 1_000,
                bursts: vec![normal(after, 7), normal(after + Duration::from_millis(1), 1)],
                ..bulk_campaign(kind)
            };
            let report = play("bulk, and seven others before the urgent mail", &scenario);
            let most = waits(&report, Group::Normal).most;
            assert!(most <= window(kind), "{report}");
            longest = longest.max(most);
            assert_rolling_holds(&report);
        }
        assert!(longest > Duration::ZERO, "the window was never full");
    }
}

#[test]
fn mail_of_every_day_hardly_waits_for_a_campaign() {
    for kind in KINDS {
        let scenario = Scenario {
            streams: vec![Stream {
                per_minute: 3.0,
                lasts: Duration::from_hours(8),
                lane: Lane::Normal,
            }],
            ..bulk_campaign(kind)
        };
        let report = play("bulk, three other mails a minute", &scenario);
        assert!(waits(&report, Group::Normal).p90 <= window(kind), "{report}");
        assert_drains(&report, 2.5, 115.0);
        assert_rolling_holds(&report);
    }
}
