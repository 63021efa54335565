//! Rolling windows hold for every 60 s and every 24 h, however they are aligned.

use mailrl_core::{Config, Lane, Request, Verdict, WindowKind, Wish, commit, release, reserve};
use proptest::prelude::*;

const HOUR_MS: u64 = 3_600_000;
const START: u64 = 1_700_000_000_000;
const LEASE_MS: u32 = 120_000;

/// A mail that went out: when it reached the provider, and its recipients.
type Arrival = (u64, u64);

/// The most that any span of this length holds, each arrival weighed by `weight`.
fn most_in_any_span(arrivals: &[Arrival], span_ms: u64, weight: fn(&Arrival) -> u64) -> u64 {
    let (mut most, mut sum, mut first) = (0, 0, 0);
    for arrival in arrivals {
        sum += weight(arrival);
        while arrivals[first].0 + span_ms <= arrival.0 {
            sum -= weight(&arrivals[first]);
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

/// One caller's visit: how long after the last one, what it sends, and what becomes of it.
#[derive(Debug, Clone)]
struct Visit {
    after_ms: u64,
    recipients: u32,
    fate: Fate,
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Released,
    /// It reaches the provider at once, and nobody commits.
    Uncommitted,
    /// It reaches the provider after the first time, and is committed after both.
    Committed {
        arrives_ms: u64,
        answers_ms: u64,
    },
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let fate = prop_oneof![
        1 => Just(Fate::Released),
        3 => Just(Fate::Uncommitted),
        // A send takes up to 60 s: a window that moves on while a mail is under way still counts it.
        6 => (0_u64..30_000, 0_u64..30_000).prop_map(|(arrives_ms, answers_ms)| Fate::Committed { arrives_ms, answers_ms }),
    ];
    let visit = (
        prop_oneof![5 => 0_u64..200, 5 => 0_u64..5_000, 1 => 0_u64..400_000],
        1_u32..6,
        fate,
    )
        .prop_map(|(after_ms, recipients, fate)| Visit {
            after_ms,
            recipients,
            fate,
        });
    prop::collection::vec(visit, 300..900)
}

/// Plays the visits over and over for 72 hours, and gives what reached the provider, in order.
fn play(visits: &[Visit], config: &Config) -> Vec<Arrival> {
    let mut value = Vec::new();
    let mut now = START;
    let mut arrivals = Vec::new();
    let mut commits = std::collections::BinaryHeap::new();
    for visit in visits.iter().cycle() {
        now += visit.after_ms;
        if now > START + 72 * HOUR_MS {
            break;
        }
        while let Some(&std::cmp::Reverse((at, ms, seq))) = commits.peek()
            && at <= now
        {
            commits.pop();
            let id = mailrl_core::ReservationId { ms, seq };
            commit(&mut value, config.kind, id, at)
                .unwrap()
                .expect("committed within its lease");
        }
        let request = Request {
            recipients: visit.recipients,
            wish: Wish::default(),
            lane: Lane::Normal,
            lease_ms: LEASE_MS,
        };
        match reserve(&mut value, config, &request, now).unwrap().verdict {
            Verdict::Allowed(id) => match visit.fate {
                Fate::Released => {
                    release(&mut value, config.kind, id, now)
                        .unwrap()
                        .expect("released at once");
                }
                Fate::Uncommitted => arrivals.push((now, u64::from(visit.recipients))),
                Fate::Committed {
                    arrives_ms,
                    answers_ms,
                } => {
                    arrivals.push((now + arrives_ms, u64::from(visit.recipients)));
                    commits.push(std::cmp::Reverse((now + arrives_ms + answers_ms, id.ms, id.seq)));
                }
            },
            // Half of the denied wait for exactly as long as they were told, and a caller that
            // comes 1 ms too early must not slip through.
            Verdict::Denied { retry_after_ms, .. } if visit.after_ms % 2 == 0 => now += retry_after_ms - 1,
            Verdict::Denied { .. } => {}
            Verdict::TooLarge { .. } => unreachable!("five recipients fit every day here"),
        }
    }
    arrivals.sort_unstable();
    arrivals
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_span_of_72_hours_is_over_a_limit(visits in visits(), per_minute in 3_u32..30, per_day in 200_u32..3_000) {
        let config = Config { per_minute, per_day, kind: WindowKind::Rolling, pacing: false, bulk_share: 80 };
        let arrivals = play(&visits, &config);
        let minute = most_in_any_span(&arrivals, 60_000, |_| 1);
        let day = most_in_any_span(&arrivals, 24 * HOUR_MS, |&(_, recipients)| recipients);
        prop_assert!(minute <= u64::from(per_minute), "{minute} messages in a minute of {per_minute}");
        prop_assert!(day <= u64::from(per_day), "{day} recipients in a day of {per_day}");
    }
}

#[test]
fn a_calendar_window_lets_twice_as_much_through_around_the_minute() {
    // Why the rolling kind exists; and a check that the measure above can find a span over the limit.
    let config = Config {
        per_minute: 5,
        per_day: 9_000,
        kind: WindowKind::Calendar,
        pacing: false,
        bulk_share: 80,
    };
    let mut value = Vec::new();
    let minute = START - START % 60_000;
    let mut arrivals = Vec::new();
    for now in (minute + 59_000..minute + 61_000).step_by(100) {
        let request = Request {
            recipients: 1,
            wish: Wish::default(),
            lane: Lane::Normal,
            lease_ms: LEASE_MS,
        };
        if let Verdict::Allowed(_) = reserve(&mut value, &config, &request, now).unwrap().verdict {
            arrivals.push((now, 1));
        }
    }
    assert_eq!(most_in_any_span(&arrivals, 60_000, |_| 1), 10);
}
