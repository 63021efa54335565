//! The pods' senders, and the mails that are due and wait for one.

use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Senders {
    /// How many are free in each pod.
    free: Vec<u32>,
    waiting: VecDeque<usize>,
}

impl Senders {
    pub fn new(pods: &[u32]) -> Self {
        Self {
            free: pods.to_vec(),
            waiting: VecDeque::new(),
        }
    }

    pub fn wait(&mut self, mail: usize) {
        self.waiting.push_back(mail);
    }

    /// The mail that waits longest and a pod to send it, the one with most senders free.
    pub fn next(&mut self) -> Option<(usize, usize)> {
        let pod = (0..self.free.len()).max_by_key(|pod| self.free[*pod])?;
        if self.free[pod] == 0 {
            return None;
        }
        Some((self.waiting.pop_front()?, pod))
    }

    pub fn occupy(&mut self, pod: usize) {
        self.free[pod] -= 1;
    }

    pub fn leave(&mut self, pod: usize) {
        self.free[pod] += 1;
    }
}
