//! The decision of mailrl, as pure functions: the bytes of a mailbox's value and the time in, an
//! answer and the changed bytes out. Nothing here knows Redis, a clock or a socket; the module, the
//! simulation and the tests all call the same code.
//!
//! | call | when |
//! | --- | --- |
//! | [`reserve`] | before a send: checks and counts one message in both windows |
//! | [`release`] | the send failed: gives the budget back |
//! | [`commit`] | the mail is out: keeps the budget, frees its place among the concurrent sends |
//! | [`pause`] | the provider said no: nobody sends for a while |
//! | [`override_limits`] | the operator knows better |
//! | [`status`] | somebody wants to know |
//!
//! [`arguments`] reads what a caller asks for from the words of its call.
//!
//! ```
//! use mailrl_core::{Config, Lane, Request, Verdict, Wish, reserve};
//!
//! let mut value = Vec::new();
//! let request = Request { recipients: 3, wish: Wish::default(), lane: Lane::Normal, lease_ms: 120_000 };
//! let answer = reserve(&mut value, &Config::default(), &request, 1_800_000_000_000)?;
//! assert!(matches!(answer.verdict, Verdict::Allowed(_)));
//! assert_eq!((answer.minute_left, answer.day_left), (24, 8_997));
//! # Ok::<(), mailrl_core::BadState>(())
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

pub mod arguments;
mod changes;
mod close;
mod denial;
mod error;
pub mod expiry;
mod id;
mod layout;
mod limits;
mod overrides;
mod pause;
mod redate;
mod reservation;
mod reserve;
mod room;
mod status;
mod turns;
mod used;
mod value;
mod verdict;
mod window;

pub use changes::{Changes, Ranges};
pub use close::{commit, release};
pub use error::BadState;
pub use id::{IdText, ReservationId};
pub use layout::SHORTEST_VALUE;
pub use limits::{Config, Lane, Wish};
pub use overrides::{Overridden, Override, override_limits};
pub use pause::{MOST_PAUSE_MS, Paused, pause};
pub use reservation::{MOST_LEASE_MS, MOST_OPEN};
pub use reserve::reserve;
pub use status::{Status, WindowStatus, status};
pub use value::Value;
pub use verdict::{
    Answer, CONCURRENT_HINT_MS, MOST_RETRY_AFTER_MS, OVERRIDE_WAIT_MS, Reason, Request, Verdict,
};
pub use window::{Shape, WindowKind};
