//! The ideal: what a perfect scheduler needs for the same mails under the same limits.
//!
//! It knows at each moment what the windows hold, to the millisecond (a rolling minute is of 60 s, not
//! of 61 slots), sends each mail in the very moment that it fits, first come, first served in each
//! lane, the normal lane before the bulk lane, and asks for nothing. The way to Graph takes it no time,
//! and it knows no `CONCURRENT` and no pauses.
//!
//! For `n` mails that all wait at the start and a limit of `L` in a window of `W` that is
//! (⌈n / L⌉ − 1) · W in a rolling window: the first `L` go at once. In a calendar window that was under
//! way at the start the part that had passed is less.

use std::collections::VecDeque;

use mailrl_core::{Config, Lane};

use crate::change::Change;
use crate::graph::{DAY_MS, MINUTE_MS};
use crate::mail::Mail;
use crate::sliding::Seen;

/// When the perfect scheduler sends each of these mails, which are in the order they come in, in ms
/// since 1970 and in the order they are sent. `changes` are in order too.
pub(crate) fn ideal(mails: &[Mail], mut config: Config, changes: &[(u64, Change)]) -> Vec<u64> {
    let mut changes = changes.iter().peekable();
    let mut coming = mails.iter().peekable();
    let (mut normal, mut bulk) = (VecDeque::new(), VecDeque::new());
    let (mut minute, mut day) = (Seen::nothing(MINUTE_MS), Seen::nothing(DAY_MS));
    let mut sent = Vec::with_capacity(mails.len());
    let mut now = 0;
    loop {
        while let Some((_, change)) = changes.next_if(|(at, _)| *at <= now) {
            change.apply(&mut config);
        }
        while let Some(mail) = coming.next_if(|mail| mail.wanted_at <= now) {
            match mail.group.lane() {
                Lane::Normal => normal.push_back(mail),
                Lane::Bulk => bulk.push_back(mail),
            }
        }
        let mut opens_at = |queue: &VecDeque<&Mail>, percent: u32| {
            let mail = queue.front()?;
            let of_lane = |limit: u32| (u64::from(limit) * u64::from(percent) / 100).max(1);
            let minute = minute.opens_at(config.kind, now, of_lane(config.per_minute), 1)?;
            let day = day.opens_at(config.kind, now, of_lane(config.per_day), mail.recipients.into())?;
            Some(minute.max(day))
        };
        let normal_at = opens_at(&normal, 100);
        let bulk_at = opens_at(&bulk, config.bulk_share);
        let lane = match (normal_at, bulk_at) {
            (Some(at), _) if at <= now => &mut normal,
            (_, Some(at)) if at <= now => &mut bulk,
            _ => {
                let comes_at = coming.peek().map(|mail| mail.wanted_at);
                let changes_at = changes.peek().map(|(at, _)| *at);
                match [normal_at, bulk_at, comes_at, changes_at]
                    .into_iter()
                    .flatten()
                    .min()
                {
                    Some(next) => now = next,
                    None => return sent,
                }
                continue;
            }
        };
        if let Some(mail) = lane.pop_front() {
            minute.add(now, 1);
            day.add(now, mail.recipients.into());
            sent.push(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use mailrl_core::WindowKind;

    use super::*;

    const START: u64 = 1_800_000_020_000;

    fn last(kind: WindowKind, mails: usize) -> u64 {
        let mails = vec![Mail::urgent(START); mails];
        let config = Config {
            kind,
            ..Config::default()
        };
        ideal(&mails, config, &[]).last().copied().unwrap_or_default() - START
    }

    #[test]
    fn it_is_the_formula_where_all_wait_at_the_start() {
        assert_eq!(last(WindowKind::Rolling, 25), 0);
        assert_eq!(last(WindowKind::Rolling, 26), 60_000);
        assert_eq!(last(WindowKind::Rolling, 1_000), 39 * 60_000);
        assert_eq!(last(WindowKind::Calendar, 25), 0);
        assert_eq!(last(WindowKind::Calendar, 26), 40_000);
        assert_eq!(last(WindowKind::Calendar, 1_000), 38 * 60_000 + 40_000);
        assert_eq!(last(WindowKind::Rolling, 9_001), DAY_MS);
    }

    #[test]
    fn a_change_counts_from_its_time_on() {
        let mails = vec![Mail::urgent(START); 60];
        let config = Config {
            kind: WindowKind::Rolling,
            ..Config::default()
        };
        let sent = ideal(&mails, config, &[(START + 10_000, Change::PerMinute(40))]);
        let at = |after: u64| sent.iter().filter(|at| **at == START + after).count();
        assert_eq!((at(0), at(10_000), at(60_000)), (25, 15, 20));
    }
}
