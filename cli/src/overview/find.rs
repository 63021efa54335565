//! Which mailboxes there are. Pure: it says from where to scan on, and is told what was found.
//!
//! A pass over a large Redis takes many looks. Until one has ended, what the pass before found still
//! counts: a scan promises to find every key that is there all the time, so what a whole pass did not
//! find is gone.

use std::collections::BTreeSet;

/// The mailboxes that were found.
#[derive(Debug, Default)]
pub struct Found {
    cursor: u64,
    this_pass: BTreeSet<Vec<u8>>,
    last_pass: BTreeSet<Vec<u8>>,
    /// This pass, and the last, found more than can be held.
    overflows: (bool, bool),
    has_ended_once: bool,
}

impl Found {
    /// From where to scan on.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Takes what a step found, and holds `most` keys of it at most. True if that was the end of a pass.
    pub fn take(&mut self, cursor: u64, keys: Vec<Vec<u8>>, most: usize) -> bool {
        self.cursor = cursor;
        for key in keys {
            if self.this_pass.len() < most {
                self.this_pass.insert(key);
            } else if !self.this_pass.contains(&key) {
                self.overflows.0 = true;
            }
        }
        let has_ended = cursor == 0;
        if has_ended {
            self.last_pass = std::mem::take(&mut self.this_pass);
            self.overflows = (false, self.overflows.0);
            self.has_ended_once = true;
        }
        has_ended
    }

    /// Starts anew, as after the connection was lost: its cursor means nothing to another server.
    pub fn restart(&mut self) {
        self.cursor = 0;
        self.this_pass.clear();
        self.overflows.0 = false;
    }

    /// All that is known of, `most` at most.
    pub fn keys(&self, most: usize) -> BTreeSet<Vec<u8>> {
        self.last_pass
            .union(&self.this_pass)
            .take(most)
            .cloned()
            .collect()
    }

    /// True once a whole pass was made.
    pub fn has_ended_once(&self) -> bool {
        self.has_ended_once
    }

    /// True if there are more than can be held.
    pub fn overflows(&self) -> bool {
        self.overflows.0 || self.overflows.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<Vec<u8>> {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    fn known(found: &Found) -> Vec<Vec<u8>> {
        found.keys(10).into_iter().collect()
    }

    #[test]
    fn a_mailbox_is_gone_only_after_a_pass_without_it() {
        let mut found = Found::default();
        assert!(!found.take(7, keys(&["a", "b"]), 10));
        assert_eq!((found.cursor(), found.has_ended_once()), (7, false));
        assert!(found.take(0, keys(&["c", "a"]), 10));
        assert!(found.has_ended_once());
        assert_eq!(known(&found), keys(&["a", "b", "c"]));
        found.take(7, keys(&["a"]), 10);
        assert_eq!(known(&found), keys(&["a", "b", "c"]));
        found.take(0, keys(&["d"]), 10);
        assert_eq!(known(&found), keys(&["a", "d"]));
    }

    #[test]
    fn a_pass_that_was_cut_off_takes_nothing_away() {
        let mut found = Found::default();
        found.take(0, keys(&["a", "b"]), 10);
        found.take(7, keys(&["a"]), 10);
        found.restart();
        assert_eq!(found.cursor(), 0);
        assert_eq!(known(&found), keys(&["a", "b"]));
    }

    #[test]
    fn no_more_are_held_than_allowed_and_that_is_known() {
        let mut found = Found::default();
        found.take(7, keys(&["a", "b"]), 2);
        found.take(8, keys(&["a"]), 2);
        assert!(!found.overflows());
        found.take(0, keys(&["c"]), 2);
        assert!(found.overflows());
        assert_eq!(known(&found), keys(&["a", "b"]));
        found.take(0, keys(&["a"]), 2);
        assert!(!found.overflows());
    }
}
