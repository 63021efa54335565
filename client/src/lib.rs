//! Reserves a mailbox's budget in Redis before each send, and fails open.
//!
//! | there is | use it to |
//! | --- | --- |
//! | [`RateLimitedGraphMailer`] | put a budget on a mailer: it is a lettre [`AsyncTransport`](lettre::AsyncTransport) around another one, and the caller sees no difference |
//! | [`MailRateLimiter`] | ask for budget yourself: reserve, then commit or release |
//! | [`Limits`], [`Lane`], [`Mailbox`] | say how much, in which queue, and whose |
//! | [`RateLimiterConfig`] | say where Redis is (one server, sentinels, a cluster), and how long it may take |
//! | [`SendFailure`], [`MailOutcome`] | teach the decorator what the errors of your mailer mean; done for lettre's SMTP transport |
//! | [`handover`] | tell it when your mailer has begun to write, so that a dropped send gives its budget back |
//! | [`events`] | find what it logs |
//!
//! It needs a Redis with the module `libmailrl.so`. Without one, mail goes out all the same: each
//! failure is a [`FailOpen`] with its [`FailOpenCause`], and no call takes longer than its deadline.
//!
//! ```no_run
//! use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
//! use mailrl_client::{MailRateLimiter, RateLimitedGraphMailer, RateLimiterConfig};
//!
//! # async fn example(message: Message) -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = MailRateLimiter::new(RateLimiterConfig::new("redis://127.0.0.1:6379"))?;
//! let mailer = AsyncSmtpTransport::<Tokio1Executor>::relay("smtp.example.com")?.build();
//! let mailer = RateLimitedGraphMailer::new(mailer, limiter);
//! match mailer.send(message).await {
//!     Ok(_) => println!("sent"),
//!     Err(error) => match error.exceeded() {
//!         Some(exceeded) => println!("again in {:?}", exceeded.retry_after),
//!         None => println!("not sent: {error}"),
//!     },
//! }
//! mailer.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod breaker;
mod cause;
mod cluster;
mod config;
mod connection;
mod counts;
mod decision;
mod decorator;
mod error;
pub mod events;
pub mod handover;
mod health;
mod lane;
mod late;
mod limiter;
mod limits;
mod mailbox;
mod outcome;
mod protocol;
mod sentinel;
mod servers;
mod settle;
mod slots;
mod smtp;
mod tls;

pub use cause::FailOpenCause;
pub use config::{ConfigError, RateLimiterConfig};
pub use counts::Counts;
pub use decision::{Decision, Denial, DenialReason, FailOpen, Reservation, TooLarge};
pub use decorator::RateLimitedGraphMailer;
pub use error::{MailRateLimitExceeded, RateLimitedError};
pub use lane::Lane;
pub use limiter::MailRateLimiter;
pub use limits::Limits;
pub use mailbox::Mailbox;
pub use outcome::{MailOutcome, SendFailure};
pub use tls::{open_redis, trusted_certificates};
