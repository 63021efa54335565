//! Without the brake: the same mails at once, straight to Graph.

use std::time::{Duration, Instant};

use lettre::{Address, AsyncTransport};
use mailrl_mailer::{MicrosoftGraphMailer, Secret};

use crate::Failure;
use crate::mails::Mail;
use crate::stage::{CLIENT_ID, CLIENT_SECRET, Stage};

/// A mailbox that nothing was sent from yet.
pub const MAILBOX: &str = "unbraked@example.com";

/// How it went.
#[derive(Debug, Default)]
pub struct Unbraked {
    pub sent: u64,
    /// Refused, and nobody tries again.
    pub lost: u64,
    pub took: Duration,
}

pub async fn send(stage: &Stage, mails: &[Mail]) -> Result<Unbraked, Failure> {
    let graph = stage.graph.base_url();
    let mailer = MicrosoftGraphMailer::builder("demo", CLIENT_ID, Secret::new(CLIENT_SECRET))
        .login_url(&graph)
        .graph_url(&graph)
        .no_proxy()
        .build()?;
    let from: Address = MAILBOX.parse()?;
    let start = Instant::now();
    let (one, other) = mails.split_at(mails.len().div_ceil(2));
    let (one, other) = tokio::try_join!(send_all(&mailer, &from, one), send_all(&mailer, &from, other))?;
    Ok(Unbraked {
        sent: one.sent + other.sent,
        lost: one.lost + other.lost,
        took: start.elapsed(),
    })
}

async fn send_all(
    mailer: &MicrosoftGraphMailer,
    from: &Address,
    mails: &[Mail],
) -> Result<Unbraked, Failure> {
    let mut unbraked = Unbraked::default();
    for mail in mails {
        let envelope = mail.envelope(from)?;
        match mailer.send_raw(&envelope, &mail.content).await {
            Ok(_) => unbraked.sent += 1,
            Err(error) if error.is_throttled() => unbraked.lost += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(unbraked)
}
