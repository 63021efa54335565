//! No mailbox sent more in any 60 s than it may.
//!
//! Mail that Graph took at an unsure time is left out: while Redis gives no decision mail goes out
//! uncounted, and a worker that is killed before its commit leaves a mail counted at the time of its
//! reservation. All other mail was counted, so it alone must be within the limit in every 60 s,
//! whatever lies between.

use std::collections::BTreeSet;

use super::{Accepted, Books, Imbalance};

const WINDOW_MS: u64 = 60_000;

/// How long a mail may be under way between its reservation and Graph.
pub const UNDER_WAY_MS: u64 = 3_000;

/// From this time (ms since 1970) on, a mailbox may send so many messages in a minute.
#[derive(Debug, Clone)]
pub struct LimitChange {
    pub mailbox: String,
    pub from: u64,
    pub per_minute: u32,
}

/// Those that must be within the limit.
pub fn judged(books: &Books) -> impl Iterator<Item = &Accepted> {
    let is_unsure = |at: u64| books.unsure.iter().any(|time| time.contains(&at));
    books.accepted.iter().filter(move |mail| !is_unsure(mail.at))
}

pub fn check(books: &Books) -> Vec<Imbalance> {
    let mailboxes: BTreeSet<&str> = books.accepted.iter().map(|mail| mail.mailbox.as_str()).collect();
    let found = mailboxes.into_iter().filter_map(|mailbox| worst(books, mailbox));
    found.collect()
}

/// The 60 s in which a mailbox was furthest over its limit.
fn worst(books: &Books, mailbox: &str) -> Option<Imbalance> {
    let mut mails: Vec<_> = judged(books).filter(|mail| mail.mailbox == mailbox).collect();
    mails.sort_by_key(|mail| mail.at);
    let mut first = 0;
    let mut worst: Option<(usize, Imbalance)> = None;
    for (last, mail) in mails.iter().enumerate() {
        while mails[first].at + WINDOW_MS <= mail.at {
            first += 1;
        }
        let in_window = &mails[first..=last];
        let limit = highest(
            books,
            mailbox,
            mails[first].at.saturating_sub(UNDER_WAY_MS),
            mail.at,
        );
        let over = in_window.len().saturating_sub(limit);
        if over > worst.as_ref().map_or(0, |(over, _)| *over) {
            let what = format!(
                "{mailbox} sent {} mails within 60 s from {} on, and may send {limit}",
                in_window.len(),
                mails[first].at
            );
            let ids = in_window.iter().map(|mail| mail.id.clone()).collect();
            worst = Some((over, Imbalance { what, ids }));
        }
    }
    worst.map(|(_, imbalance)| imbalance)
}

/// The highest limit that held at any time in between.
fn highest(books: &Books, mailbox: &str, from: u64, to: u64) -> usize {
    let changes = || books.limits.iter().filter(|change| change.mailbox == mailbox);
    let before = changes().rfind(|change| change.from <= from);
    let between = changes().filter(|change| (from..=to).contains(&change.from));
    let limits = before.into_iter().chain(between).map(|change| change.per_minute);
    limits
        .max()
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAILBOX: &str = "a@example.com";

    fn mails(times: impl IntoIterator<Item = u64>) -> Vec<Accepted> {
        let mail = |at: u64| Accepted {
            id: format!("m{at}"),
            mailbox: MAILBOX.into(),
            at,
        };
        times.into_iter().map(mail).collect()
    }

    fn limit(from: u64, per_minute: u32) -> LimitChange {
        LimitChange {
            mailbox: MAILBOX.into(),
            from,
            per_minute,
        }
    }

    #[test]
    fn any_sixty_seconds_hold_the_limit_and_no_more() {
        let mut books = Books {
            accepted: mails([100_000, 130_000, 160_000]),
            limits: vec![limit(0, 2)],
            ..Books::default()
        };
        assert_eq!(check(&books), []);
        books.accepted = mails([100_000, 130_000, 159_999]);
        let found = check(&books);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].ids, ["m100000", "m130000", "m159999"]);
        assert!(
            found[0].what.contains("sent 3 mails") && found[0].what.contains("may send 2"),
            "{found:?}"
        );
    }

    #[test]
    fn mail_of_an_unsure_time_is_left_out_and_no_other() {
        let books = |unsure| Books {
            accepted: mails([100_000, 101_000, 102_000, 103_000]),
            limits: vec![limit(0, 2)],
            unsure: vec![unsure],
            ..Books::default()
        };
        assert_eq!(check(&books(100_500..=102_500)), []);
        assert_eq!(check(&books(100_500..=101_500)).len(), 1);
    }

    #[test]
    fn a_window_over_a_change_may_hold_the_higher_limit_and_a_later_one_may_not() {
        let mut books = Books {
            accepted: mails([100_000, 101_000, 102_000]),
            limits: vec![limit(0, 3), limit(101_500, 2)],
            ..Books::default()
        };
        assert_eq!(check(&books), []);
        books.accepted = mails([110_000, 111_000, 112_000]);
        assert_eq!(check(&books).len(), 1);
    }
}
