//! Sends mail through Microsoft Graph as a lettre transport.

pub mod graph;

pub use graph::{GraphAccepted, GraphConfigError, GraphError, MicrosoftGraphMailer, Secret};
