//! What was seen of a mailbox in the last minutes.

use std::collections::VecDeque;

/// How many looks share a point, so that a line of a terminal holds minutes.
pub const LOOKS: usize = 5;
/// How many points are kept: ten minutes of a look a second.
const POINTS: usize = 120;

/// The most that was used of the minute at each point; none where Redis gave no answer.
#[derive(Debug, Default)]
pub struct History {
    points: VecDeque<Option<u32>>,
    looks: usize,
}

impl History {
    pub fn add(&mut self, used: Option<u64>) {
        let used = used.map(|used| u32::try_from(used).unwrap_or(u32::MAX));
        if self.looks.is_multiple_of(LOOKS) {
            if self.points.len() == POINTS {
                self.points.pop_front();
            }
            self.points.push_back(None);
        }
        self.looks += 1;
        if let Some(last) = self.points.back_mut() {
            *last = used.max(*last);
        }
    }

    /// The last of the points, so many at most, the oldest first.
    pub fn last(&self, most: usize) -> impl ExactSizeIterator<Item = Option<u64>> {
        let from = self.points.len().saturating_sub(most);
        self.points.range(from..).map(|point| point.map(u64::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_most_of_its_looks_and_a_gap_where_none_saw_anything() {
        let mut history = History::default();
        for used in [
            Some(1),
            Some(7),
            None,
            Some(3),
            Some(2),
            None,
            None,
            None,
            None,
            None,
            Some(9),
        ] {
            history.add(used);
        }
        assert_eq!(history.last(10).collect::<Vec<_>>(), [Some(7), None, Some(9)]);
        assert_eq!(history.last(1).collect::<Vec<_>>(), [Some(9)]);
    }

    #[test]
    fn only_the_last_minutes_are_kept() {
        let mut history = History::default();
        for used in 0..10_000 {
            history.add(Some(used));
        }
        assert_eq!(history.last(usize::MAX).len(), POINTS);
        assert_eq!(history.last(1).next(), Some(Some(9_999)));
    }
}
