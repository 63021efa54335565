//! Sends mail through Microsoft Graph as a lettre transport.

mod envelope;
pub mod graph;
mod headers;

pub use envelope::{EnvelopeError, envelope_of};
pub use graph::{GraphAccepted, GraphConfigError, GraphError, MicrosoftGraphMailer, Secret};
