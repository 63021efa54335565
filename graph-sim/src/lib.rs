//! A local stand-in for Microsoft Graph that holds senders to Microsoft's limits.
//!
//! It plays Entra's token endpoint and Graph's `sendMail` with MIME, and is the judge in tests,
//! demos and benchmarks: what it accepts counts in exact rolling windows, what goes beyond gets a
//! 429 as Graph would give it, and what it saw can be asked for afterwards.
//!
//! | route | is |
//! | --- | --- |
//! | `POST /{tenant}/oauth2/v2.0/token` | client credentials → access token |
//! | `POST /v1.0/users/{mailbox}/sendMail` | one mail: base64 of the MIME, `Content-Type: text/plain` → 202 |
//! | `GET /sim/messages?mailbox=` | what was accepted |
//! | `GET /sim/report` | per mailbox: accepted, throttled by cause, the most seen in any window |
//! | `POST /sim/faults`, `DELETE /sim/faults` | misbehave: see [`Fault`] |
//! | `POST /sim/latency` | answer every `sendMail` after a random delay: see [`DelayRange`] |
//! | `POST /sim/advance` | move the simulator's clock ahead by `{"ms": …}` |
//!
//! ```
//! # async fn example() {
//! use graph_sim::{Fault, GraphSim};
//!
//! let graph = GraphSim::builder().client("app", "secret").start().await;
//! graph.inject(Fault::answer(503).retry_after("120").times(2));
//! // … send mail to `graph.base_url()` …
//! println!("{}", graph.report());
//! # }
//! ```
//!
//! Left out of what Graph does: the bounce that follows a 202 past the recipient limit (it is a
//! 429 here, so that a test sees it), the limits on requests and bytes per app, and mail as JSON.

mod connection;
mod control;
mod fault;
mod graph_error;
mod mail;
mod report;
mod send_mail;
mod server;
mod state;
mod throttle;
mod token;

pub use fault::{Answer, DelayRange, Fault, FaultError, Moment, Target, Then};
pub use mail::StoredMessage;
pub use report::{MailboxReport, Report};
pub use server::{GraphSim, GraphSimBuilder};
pub use throttle::{Cause, Limits, MailboxThrottle, Throttled};
