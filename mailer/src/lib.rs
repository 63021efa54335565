//! Sends mail through Microsoft Graph or `SendGrid`, each mailbox within its budget: what has to wait
//! is put off, and sent by itself when its time has come.
//!
//! | there is | use it to |
//! | --- | --- |
//! | [`MicrosoftGraphMailer`] | send through Graph, as a lettre [`AsyncTransport`](lettre::AsyncTransport) |
//! | [`factory`] | get the mailer of a tenant or of a mailbox, as the configuration says, with or without the brake |
//! | [`MailProviderService`] | send a message, or be told when it will be sent |
//! | [`queue`] | keep messages until their time, in a `BullMQ` queue with a record of each |
//! | [`write_ahead`] | have something done just before a mail is handed to the wire |
//! | [`envelope_of`] | know from whom to whom a mail goes that comes without an envelope |

mod envelope;
pub mod factory;
pub mod graph;
mod headers;
mod mailer;
mod message;
pub mod queue;
pub mod service;
mod state;
mod time;
pub mod write_ahead;

pub use envelope::{EnvelopeError, envelope_of};
pub use graph::{GraphAccepted, GraphConfigError, GraphError, MicrosoftGraphMailer, Secret};
pub use mailer::{AnyMailer, Mailer, MailerError};
pub use message::{MailMessage, MessageId, MessageIdError, Sender};
pub use service::MailProviderService;
pub use state::MessageState;
