//! The proof in virtual time: how long mail waits under the limits of its mailbox, how often it asks,
//! and what Microsoft Graph sees of it.
//!
//! Every decision is made by [`mailrl_core`], the code that the module runs, on one value in memory.
//! Only the world around it is played: the clock, the queue of the mails, the senders, the way to
//! Graph. So ten thousand mails of an afternoon take about a second, and the same scenario gives
//! the same report every time.
//!
//! | part | is |
//! | --- | --- |
//! | [`Scenario`] | what is sent, under which limits, by whom |
//! | [`run`] | plays it to its end |
//! | [`Report`] | what came of it; its [`Display`](std::fmt::Display) is a table |
//! | [`plot`] | the same as a drawing |
//!
//! ```
//! use mailrl_simulation::{Scenario, run};
//!
//! let scenario = Scenario { backlog: 100, ..Scenario::default() };
//! let report = run(&scenario, |_| {})?;
//! assert_eq!(report.sent, 100);
//! assert!(report.calls_per_mail() < 2.1);
//! println!("{report}");
//! # Ok::<(), mailrl_simulation::ScenarioError>(())
//! ```

mod change;
mod events;
mod graph;
mod ideal;
mod mail;
mod plot;
mod report;
mod run;
mod scenario;
mod senders;
mod series;
mod sliding;
mod spread;
mod tally;
mod waits;
mod world;

pub use change::{Change, Planned};
pub use graph::{Arrival, GraphLimits};
pub use mail::Group;
pub use plot::{PlotError, plot};
pub use report::{Denied, Minute, Report};
pub use run::{Progress, run};
pub use scenario::{Burst, Scenario, ScenarioError, Stream};
pub use spread::{Spread, SpreadBy};
pub use waits::Waits;
