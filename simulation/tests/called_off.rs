//! A queue whose mails never come is forgotten.

mod common;

use std::time::Duration;

use common::{KINDS, campaign, play};
use mailrl_core::Lane;
use mailrl_simulation::{Burst, Scenario, Spread};

#[test]
fn three_minutes_after_a_campaign_was_called_off_a_burst_waits_two_windows_at_most() {
    for kind in KINDS {
        let window = Duration::from_millis(kind.minute().slot_ms * u64::from(kind.minute().slots));
        for called_off_s in (20..400).step_by(47) {
            for spread in [Spread::NONE, Spread::SERVICE] {
                let called_off_after = Duration::from_secs(called_off_s);
                let after = called_off_after + Duration::from_mins(3);
                let scenario = Scenario {
                    called_off_after: Some(called_off_after),
                    bursts: vec![Burst {
                        after,
                        mails: 26,
                        lane: Lane::Normal,
                    }],
                    spread,
                    ..campaign(kind)
                };
                let report = play("called off, then a burst", &scenario);
                assert_eq!(report.called_off + report.sent, 10_026);
                let minute = usize::try_from(after.as_secs() / 60).unwrap();
                let retry = report.minutes[minute].longest_retry;
                assert!(
                    retry > Duration::ZERO && retry <= window * 2,
                    "{called_off_s} s: {retry:?}\n{report}"
                );
            }
        }
    }
}
