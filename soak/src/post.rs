//! Puts mail into the queue, steadily, whatever Redis does.

use std::time::{Duration, SystemTime};

use lettre::Address;
use lettre::address::Envelope;
use mailrl_mailer::queue::{QueueOptions, SendQueue};
use mailrl_mailer::{MailMessage, MessageId, Sender};
use tokio::time::{Instant, interval, sleep};

use crate::Failure;
use crate::journal::Journal;
use crate::mailboxes::Mailbox;

/// A Redis that was killed or frozen is back by then.
const GIVE_UP_AFTER: Duration = Duration::from_mins(1);
const TRY_EVERY: Duration = Duration::from_millis(200);

/// Puts mail of this mailbox in until the time is up.
pub async fn put_in(
    mailbox: &'static Mailbox,
    queue: QueueOptions,
    journal: Journal,
    until: Instant,
) -> Result<(), Failure> {
    let mut connection = None;
    let mut ticks = interval(mailbox.every);
    let mut number = 0;
    loop {
        ticks.tick().await;
        if Instant::now() >= until {
            return Ok(());
        }
        for _ in 0..mailbox.mails {
            number += 1;
            let message = mail(mailbox.name, number)?;
            enqueue(&queue, &mut connection, &message).await?;
            journal.put_in(message.id.to_string());
        }
    }
}

/// After an error nobody knows whether it was queued, and it is queued again under the same id.
async fn enqueue(
    queue: &QueueOptions,
    connection: &mut Option<SendQueue>,
    message: &MailMessage,
) -> Result<(), Failure> {
    let give_up = Instant::now() + GIVE_UP_AFTER;
    loop {
        let error = match connection {
            None => match SendQueue::connect(queue).await {
                Ok(connected) => {
                    *connection = Some(connected);
                    continue;
                }
                Err(error) => error,
            },
            Some(queue) => match queue.enqueue(message).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            },
        };
        if Instant::now() >= give_up {
            return Err(format!("{} cannot be queued: {error}", message.id).into());
        }
        sleep(TRY_EVERY).await;
    }
}

fn mail(from: &str, number: u64) -> Result<MailMessage, Failure> {
    let name = from.split('@').next().unwrap_or(from);
    let id = format!("{name}-{number:05}@example.com");
    let recipients = (0..=number % 3).map(|to| format!("reader-{to}@example.net"));
    let recipients: Vec<_> = recipients.collect();
    let mime = format!(
        "Message-ID: <{id}>\r\nFrom: {from}\r\nTo: {}\r\nSubject: Mail {number}\r\n\r\nHello\r\n",
        recipients.join(", ")
    );
    let to: Result<Vec<Address>, _> = recipients.iter().map(|address| address.parse()).collect();
    Ok(MailMessage {
        id: id.parse::<MessageId>()?,
        sender: Sender::SystemMailbox,
        envelope: Envelope::new(Some(from.parse()?), to?)?,
        mime: mime.into_bytes().into(),
        created_at: SystemTime::now(),
        failures: 0,
    })
}
