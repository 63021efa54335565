//! Mail through Microsoft Graph: `POST /users/{mailbox}/sendMail` with the whole MIME.
//!
//! [`MicrosoftGraphMailer`] is a lettre [`AsyncTransport`](lettre::AsyncTransport). The mailbox that
//! sends is the envelope's sender; one mailer serves all mailboxes of its tenant and is cheap to
//! clone.
//!
//! ```no_run
//! use lettre::{AsyncTransport, Message};
//! use mailrl_mailer::graph::{MicrosoftGraphMailer, Secret};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let secret = Secret::new(std::env::var("CLIENT_SECRET")?);
//! let mailer = MicrosoftGraphMailer::builder("contoso.onmicrosoft.com", "client-id", secret).build()?;
//! let mail = Message::builder()
//!     .from("News <news@contoso.com>".parse()?)
//!     .to("reader@example.net".parse()?)
//!     .bcc("archive@contoso.com".parse()?)
//!     .subject("Hello")
//!     .body(String::from("Hello."))?;
//! mailer.send(mail).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The envelope decides who gets the mail
//! Graph knows no envelope: it sends to who stands in To, Cc and Bcc, and lettre takes Bcc out of
//! what it hands to a transport. So the mailer adds a `Bcc` for each envelope recipient that stands
//! in none of the three, and leaves every other byte as it is; Graph does not pass the `Bcc` on.
//! Who stands in the headers and not in the envelope would get a mail that SMTP would not have
//! brought: that is an error, and nothing is sent.
//!
//! # What became of the mail
//! The mailer never sends anything twice. [`GraphError`] answers
//! [`mail_outcome`](mailrl_client::SendFailure::mail_outcome):
//!
//! | what happened | outcome |
//! | --- | --- |
//! | 202, with or without a Retry-After | `Ok` |
//! | refused before any request: no sender, recipients that differ, over 4 MB | not sent |
//! | no access token | not sent |
//! | no connection, or it broke or time ran out before the mail was written | not sent |
//! | error code `UnknownError` or `CommandConcurrencyLimitReached`, whatever the status | unknown |
//! | 429, or 503 with a Retry-After | throttled |
//! | any other 4xx, 500, 503 | not sent |
//! | 502, 504, any other status | unknown |
//! | the connection broke, or time ran out, after the mail was written, answer not read to its end | unknown |
//!
//! # Proxies
//! The mailer honours `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` as `curl` does; see
//! [`no_proxy`](MicrosoftGraphMailerBuilder::no_proxy). It follows no redirects.

mod answer;
mod body;
mod builder;
mod error;
mod mailer;
mod recipients;
mod retry_after;
mod secret;
mod token;

pub(crate) use builder::is_address;
pub use builder::{GraphConfigError, MicrosoftGraphMailerBuilder};
pub use error::GraphError;
pub use mailer::{GraphAccepted, LARGEST_MAIL, MicrosoftGraphMailer};
pub use secret::Secret;
