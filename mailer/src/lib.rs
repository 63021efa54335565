//! Sends mail through Microsoft Graph or `SendGrid`, each mailbox within its budget: what has to
//! wait is put off, and sent by itself when its time has come.
//!
//! | there is | use it to |
//! | --- | --- |
//! | [`MicrosoftGraphMailer`] | send through Graph, as a lettre [`AsyncTransport`](lettre::AsyncTransport) |
//! | [`SendGridMailer`] | send through `SendGrid`, as one too |
//! | [`config`] | read the configuration file |
//! | [`factory`] | get the mailer of a tenant or of a mailbox, as the configuration says, with or without the brake |
//! | [`MailProviderService`] | send a message, or be told when it will be sent |
//! | [`queue`] | keep messages until their time, in a `BullMQ` queue with a record of each |
//! | [`write_ahead`] | have something done just before a mail is handed to the wire |
//! | [`envelope_of`] | know from whom to whom a mail goes that comes without an envelope |
//!
//! ```no_run
//! use mailrl_mailer::config::MailConfig;
//! use mailrl_mailer::queue::{MailStore, QueueWorker, QueueWorkerOptions};
//! use mailrl_mailer::service::{Delivery, Policy};
//! use mailrl_mailer::{MailMessage, MailProviderService, MailerFactory};
//!
//! # async fn example(message: MailMessage) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = MailerFactory::watch(|| MailConfig::read("mailrl.toml".as_ref()))?;
//! let service = MailProviderService::new(factory, Policy::default());
//! match service.send(&message).await {
//!     Ok(Delivery::Sent) => println!("sent"),
//!     Ok(Delivery::Scheduled(deferral)) => println!("at {:?}: {}", deferral.scheduled_on, deferral.reason),
//!     Err(error) => println!("{error}"),
//! }
//! let store = MailStore::open("s3://mails/waiting")?;
//! let worker = QueueWorker::start(service, store, QueueWorkerOptions::new("redis://127.0.0.1")).await?;
//! # Ok(())
//! # }
//! ```

pub mod config;
mod envelope;
pub mod factory;
pub mod graph;
mod headers;
mod mailer;
mod message;
pub mod queue;
pub mod sendgrid;
pub mod service;
mod state;
mod time;
pub mod write_ahead;

pub use envelope::{EnvelopeError, envelope_of};
pub use factory::MailerFactory;
pub use graph::{GraphAccepted, GraphConfigError, GraphError, MicrosoftGraphMailer, Secret};
pub use mailer::{AnyMailer, Mailer, MailerError};
pub use message::{MailMessage, MessageId, MessageIdError, Sender};
pub use sendgrid::{SendGridError, SendGridMailer};
pub use service::MailProviderService;
pub use state::MessageState;
