//! What a mail adds to its retry time, so that those who were told the same time do not come at once.

use std::hash::Hasher as _;
use std::time::Duration;

use fnv::FnvHasher;
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::mail::ms;

/// From nothing up to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// The most that is added.
    pub most: Duration,
    /// How it is chosen.
    pub by: SpreadBy,
}

/// How a mail's spread is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadBy {
    /// FNV-1a of the message id, as the provider service does: the same for the same mail.
    MessageId,
    /// Drawn anew at each denial.
    Chance,
}

impl Spread {
    /// Exactly as told.
    pub const NONE: Self = Self {
        most: Duration::ZERO,
        by: SpreadBy::MessageId,
    };

    /// That of the provider service: 0 to 30 s by the message id.
    pub const SERVICE: Self = Self {
        most: Duration::from_secs(30),
        by: SpreadBy::MessageId,
    };

    /// What this mail adds, in ms.
    pub(crate) fn draw(self, mail: usize, seed: u64, rng: &mut StdRng) -> u64 {
        let most = ms(self.most).min(u64::MAX - 1);
        if most == 0 {
            return 0;
        }
        match self.by {
            SpreadBy::MessageId => {
                let mut hasher = FnvHasher::default();
                hasher.write(format!("<{mail}.{seed:x}@simulation.invalid>").as_bytes());
                hasher.finish() % (most + 1)
            }
            SpreadBy::Chance => rng.random_range(0..=most),
        }
    }
}
