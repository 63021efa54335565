//! Turns: each denial gets a retry time of its own, and nothing else changes by it.

use mailrl_core::{
    Config, Lane, MOST_RETRY_AFTER_MS, Reason, Request, Verdict, WindowKind, Wish, pause, reserve,
};
use proptest::prelude::*;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// At the beginning of a minute and of a day.
const START: u64 = 19_700 * 24 * HOUR_MS;
const KINDS: [WindowKind; 2] = [WindowKind::Calendar, WindowKind::Rolling];

fn config(kind: WindowKind, per_minute: u32) -> Config {
    Config {
        per_minute,
        per_day: 1_000_000,
        kind,
        pacing: true,
        bulk_share: 80,
    }
}

/// What the minute window covers.
fn span(kind: WindowKind) -> u64 {
    kind.minute().slot_ms * u64::from(kind.minute().slots)
}

fn ask(value: &mut Vec<u8>, config: &Config, lane: Lane, recipients: u32, now: u64) -> Verdict {
    let request = Request {
        recipients,
        wish: Wish::default(),
        lane,
        lease_ms: 1_000,
    };
    reserve(value, config, &request, now).unwrap().verdict
}

/// Asks for one recipient, which is denied: until when.
fn turn(value: &mut Vec<u8>, config: &Config, now: u64) -> u64 {
    match ask(value, config, Lane::Normal, 1, now) {
        Verdict::Denied { retry_after_ms, .. } => now + retry_after_ms,
        other => panic!("denied was expected, not {other:?}"),
    }
}

/// Sends until the minute is full.
fn fill(value: &mut Vec<u8>, config: &Config, now: u64) {
    while let Verdict::Allowed(_) = ask(&mut value.clone(), config, Lane::Normal, 1, now) {
        ask(value, config, Lane::Normal, 1, now);
    }
}

#[test]
fn turns_are_as_far_apart_as_the_window_lets_messages_through() {
    for kind in KINDS {
        for limit in [1, 7, 25, 1_000] {
            let (config, mut value) = (config(kind, limit), Vec::new());
            fill(&mut value, &config, START + 5_000);
            let opens_at = if kind == WindowKind::Calendar {
                START + MINUTE_MS
            } else {
                START + 5_000 + 61_000
            };
            for nth in 0..500 {
                let after_us = nth * (span(kind) * 1_000 / u64::from(limit));
                let wanted = opens_at + after_us.div_ceil(1_000);
                assert_eq!(
                    turn(&mut value, &config, START + 5_000),
                    wanted,
                    "{kind:?} {limit} {nth}"
                );
            }
        }
    }
}

#[test]
fn a_limit_of_more_messages_than_the_span_has_milliseconds_has_turns_too() {
    let (config, mut value) = (config(WindowKind::Calendar, 240_000), Vec::new());
    fill(&mut value, &config, START);
    let turns: Vec<_> = (0..8)
        .map(|_| turn(&mut value, &config, START) - START - MINUTE_MS)
        .collect();
    assert_eq!(turns, [0, 1, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn a_turn_that_is_further_off_is_given_as_25_hours() {
    for kind in KINDS {
        let (config, mut value) = (config(kind, 1), Vec::new());
        fill(&mut value, &config, START);
        let waits: Vec<_> = (0..2_000)
            .map(|_| turn(&mut value, &config, START) - START)
            .collect();
        assert!(waits.is_sorted());
        assert!(waits[1_400] < MOST_RETRY_AFTER_MS);
        assert!(waits[1_500..].iter().all(|&wait| wait == MOST_RETRY_AFTER_MS));
    }
}

#[test]
fn a_queue_is_in_the_order_of_the_calls_however_late_they_come() {
    for kind in KINDS {
        let (config, mut value) = (config(kind, 10), Vec::new());
        fill(&mut value, &config, START);
        let turns: Vec<_> = (0..50)
            .map(|nth| turn(&mut value, &config, START + nth * 1_000))
            .collect();
        let step = span(kind) / 10;
        assert!(turns.windows(2).all(|two| two[1] - two[0] == step), "{turns:?}");
    }
}

#[test]
fn those_who_are_paused_queue_up_from_the_end_of_the_pause() {
    for kind in KINDS {
        for pause_ms in [1_000, 50_000, 600_000_u32] {
            // With nothing sent, with a full minute, and with a queue that is there already.
            for (sent, queued) in [(false, 0), (true, 0), (true, 1), (true, 30)] {
                let (config, mut value) = (config(kind, 20), Vec::new());
                if sent {
                    fill(&mut value, &config, START);
                }
                let now = START + 100;
                let last_before = (0..queued).map(|_| turn(&mut value, &config, now)).last();
                pause(&mut value, kind, pause_ms, now).unwrap();
                let end = now + u64::from(pause_ms);
                let opens_at = if sent { end.max(START + span(kind)) } else { end };
                let step = span(kind) / 20;
                // They come all through the pause.
                let mut next = last_before.map_or(opens_at, |last| opens_at.max(last + step));
                for at in (now..end).step_by(usize::try_from(pause_ms / 40).unwrap()) {
                    assert_eq!(
                        turn(&mut value, &config, at),
                        next,
                        "{kind:?} {pause_ms} {sent} {queued} {at}"
                    );
                    next += step;
                }
            }
        }
    }
}

#[test]
fn a_pause_that_is_ended_early_leaves_no_queue_at_its_end() {
    for kind in KINDS {
        let (config, mut value) = (config(kind, 5), Vec::new());
        pause(&mut value, kind, 6 * 3_600_000, START).unwrap();
        for _ in 0..10 {
            assert!(turn(&mut value, &config, START) >= START + 6 * HOUR_MS);
        }
        pause(&mut value, kind, 0, START + 1_000).unwrap();
        fill(&mut value, &config, START + 1_000);
        let next = turn(&mut value, &config, START + 1_000);
        assert!(
            next <= START + 1_000 + span(kind),
            "{kind:?}: {} ms",
            next - START
        );
    }
}

/// When the next of a burst that fills the minute may come, in ms after it.
fn wait_of_a_burst(value: &mut Vec<u8>, config: &Config, now: u64) -> u64 {
    fill(value, config, now);
    turn(value, config, now) - now
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Everybody comes when told, a few more come in between: the turns of the lane go up by a step
    /// at least, and each mail takes about two calls.
    #[test]
    fn turns_of_a_lane_go_up_as_long_as_their_holders_come(
        rolling in any::<bool>(),
        per_minute in 3_u32..40,
        waiting in 50_u64..400,
        bulk in any::<bool>(),
        passing in prop::collection::vec(0_u64..600_000, 0..20),
    ) {
        let kind = KINDS[usize::from(rolling)];
        let config = config(kind, per_minute);
        let lane = if bulk { Lane::Bulk } else { Lane::Normal };
        let of_lane = if bulk { (per_minute * 80 / 100).max(1) } else { per_minute };
        let step = span(kind) / u64::from(of_lane);
        let mut value = Vec::new();
        let mut due: std::collections::BinaryHeap<_> =
            (0..waiting).map(|_| START).chain(passing.into_iter().map(|after| START + after)).map(std::cmp::Reverse).collect();
        let mails = due.len() as u64;
        let (mut calls, mut last) = (0, 0);
        while let Some(std::cmp::Reverse(now)) = due.pop() {
            calls += 1;
            if let Verdict::Denied { reason, retry_after_ms } = ask(&mut value, &config, lane, 1, now) {
                prop_assert_eq!(reason, Reason::Minute);
                let turn = now + retry_after_ms;
                prop_assert!(turn >= last + step || last <= now, "{} after {}, at {}", turn, last, now);
                last = turn;
                due.push(std::cmp::Reverse(turn));
            }
        }
        prop_assert!(calls * 10 <= mails * 23, "{} calls for {} mails", calls, mails);
    }

    /// Whatever was called off: three minutes later it is forgotten, whether all is quiet or not.
    #[test]
    fn a_campaign_that_was_called_off_pushes_no_later_mail(
        rolling in any::<bool>(),
        per_minute in 12_u32..40,
        waiting in 1_u64..1_000,
        trickle_ms in prop::option::of(15_000_u64..60_000),
        runs_ms in 0_u64..400_000,
        quiet_ms in 180_000_u64..1_000_000,
    ) {
        let kind = KINDS[usize::from(rolling)];
        let config = config(kind, per_minute);
        let mut value = Vec::new();
        fill(&mut value, &config, START + 700);
        let mut turns = std::collections::VecDeque::new();
        for _ in 0..waiting {
            turns.push_back(turn(&mut value, &config, START + 700));
        }
        // Until it is called off they come in turn.
        while let Some(now) = turns.pop_front().filter(|turn| *turn < START + runs_ms) {
            if let Verdict::Denied { retry_after_ms, .. } = ask(&mut value, &config, Lane::Normal, 1, now) {
                turns.push_back(now + retry_after_ms);
            }
        }
        let called_off = START + runs_ms.max(700);
        // Some other mail goes on, far less than the limit.
        if let Some(trickle_ms) = trickle_ms {
            for nth in 0..quiet_ms / trickle_ms {
                ask(&mut value, &config, Lane::Normal, 1, called_off + nth * trickle_ms);
            }
        }
        let waits = wait_of_a_burst(&mut value, &config, called_off + quiet_ms);
        prop_assert!(waits <= 2 * span(kind), "{} ms", waits);
    }
}
