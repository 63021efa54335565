//! Reservations against sends.
//!
//! A send that passed the brake was allowed by Redis or failed open, and came to something that its
//! worker logged. Two counts are not exact, and both are bounded: a process that is killed takes the
//! count of the few sends along that are under way right then; and a send that failed open since
//! Redis was late may have been allowed after all.

use super::Imbalance;

/// How many counts a kill can cost: as many as one mailbox may have under way.
const LOST_BY_A_KILL: u64 = 3;

/// Sums over all processes and their restarts.
#[derive(Debug, Default, Clone, Copy)]
pub struct Budget {
    /// Reservations that Redis gave, by `INFO mailrl`, read as the last thing before each kill.
    pub allowed: u64,
    /// Of those, the ones that it took back.
    pub released: u64,
    /// Questions that Redis did not answer, by the workers' logs: as many sends failed open at most.
    pub unanswered: u64,
    /// What sends came to, by the workers' logs.
    pub sent: u64,
    pub unknown: u64,
    pub not_sent: u64,
    /// SIGKILLs of Redis and of workers.
    pub kills: u64,
}

pub fn check(budget: &Budget) -> Option<Imbalance> {
    let &Budget {
        allowed,
        released,
        unanswered,
        sent,
        unknown,
        not_sent,
        kills,
    } = budget;
    let lost = kills * LOST_BY_A_KILL;
    let passed = sent + unknown + not_sent;
    let what = if passed > allowed + unanswered + lost {
        "more was sent than was allowed or failed open"
    } else if allowed > passed + lost {
        "more was allowed than came to anything"
    } else if sent + unknown + released > allowed + unanswered + lost {
        "more was sent or released than was allowed or failed open"
    } else {
        return None;
    };
    Some(Imbalance {
        what: format!("{what}: {budget:?}"),
        ids: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Budget = Budget {
        allowed: 90,
        released: 10,
        unanswered: 10,
        sent: 85,
        unknown: 5,
        not_sent: 10,
        kills: 0,
    };

    fn found(budget: Budget) -> String {
        check(&budget).map_or_else(String::new, |imbalance| imbalance.what)
    }

    #[test]
    fn what_was_allowed_or_failed_open_and_came_to_something_balances() {
        assert_eq!(found(GOOD), "");
    }

    #[test]
    fn each_side_that_has_too_much_is_told() {
        assert!(found(Budget { sent: 86, ..GOOD }).starts_with("more was sent than"));
        assert!(found(Budget { allowed: 101, ..GOOD }).starts_with("more was allowed"));
        assert!(found(Budget { released: 11, ..GOOD }).starts_with("more was sent or released"));
    }

    #[test]
    fn a_kill_may_cost_a_few_counts() {
        let sent = |sent| {
            found(Budget {
                sent,
                kills: 1,
                ..GOOD
            })
        };
        assert_eq!(sent(88), "");
        assert_ne!(sent(89), "");
    }
}
