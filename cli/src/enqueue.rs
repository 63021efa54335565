//! `mailrl enqueue`: mail out of files into the queue.

use std::sync::Arc;
use std::time::SystemTime;

use lettre::Address;
use mailrl_mailer::queue::{Enqueued, QueueError, SendQueue};
use mailrl_mailer::{MailMessage, MessageId, MessageState, Sender};
use serde::Serialize;

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::mail_file::{Mail, MailFileError, Source};
use crate::terminal::Terminal;
use crate::words::{counted, one_line};

/// Queues the files, and says what became of each.
pub async fn run(args: args::Enqueue, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let (sources, repeated) = Source::list(args.files);
    if args.id.is_some() && sources.len() > 1 {
        return Err(ConfigError::IdOfMany);
    }
    for source in repeated {
        terminal.err(&format!("{source}: named twice, queued once"));
    }
    let producer = Producer {
        queue: SendQueue::connect(&config.queue(&args.place)?)
            .await
            .map_err(Arc::new),
        sender: args.tenant.map_or(Sender::SystemMailbox, Sender::Tenant),
        from: args.from.map(Arc::new),
        id: args.id,
    };
    let mut tally = Tally::default();
    for source in sources {
        let report = producer.enqueue_file(source).await;
        tally.add(&report);
        if args.json {
            let _ = terminal.out(&report.json());
        } else if report.outcome.is_err() {
            terminal.err(&report.line());
        } else {
            let _ = terminal.out(&report.line());
        }
    }
    if args.json {
        terminal.err(&tally.summary());
    } else {
        let _ = terminal.out(&tally.summary());
    }
    Ok(tally.exit())
}

struct Producer {
    queue: Result<SendQueue, Arc<QueueError>>,
    sender: Sender,
    from: Option<Arc<Address>>,
    id: Option<MessageId>,
}

impl Producer {
    async fn enqueue_file(&self, source: Source) -> Report {
        let file = source.to_string();
        let from = self.from.clone();
        let reading = tokio::task::spawn_blocking(move || source.read(from.as_deref())).await;
        let read =
            reading.unwrap_or_else(|error| Err(MailFileError::Unreadable(std::io::Error::other(error))));
        let Mail { content, envelope } = match read {
            Ok(mail) => mail,
            Err(error) => {
                return Report {
                    file,
                    message: None,
                    outcome: Err(Failure {
                        reason: error.reason(),
                        error: error.to_string(),
                    }),
                };
            }
        };
        let own_id = || MessageId::of_mail(&content).unwrap_or_else(MessageId::random);
        let message = MailMessage {
            id: self.id.clone().unwrap_or_else(own_id),
            sender: self.sender.clone(),
            envelope,
            mime: content.into(),
            created_at: SystemTime::now(),
            failures: 0,
        };
        let enqueued = match &self.queue {
            Ok(queue) => queue.enqueue(&message).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        Report {
            file,
            outcome: enqueued.map_err(|error| Failure {
                reason: "queue",
                error: one_line(&error),
            }),
            message: Some(message),
        }
    }
}

struct Failure {
    reason: &'static str,
    error: String,
}

/// What became of one file.
struct Report {
    file: String,
    message: Option<MailMessage>,
    outcome: Result<Enqueued, Failure>,
}

/// The fields that `--json` promises.
#[derive(Serialize)]
struct Json<'r> {
    file: &'r str,
    id: Option<&'r str>,
    mailbox: Option<String>,
    recipients: Option<usize>,
    result: &'static str,
    state: Option<MessageState>,
    reason: Option<&'static str>,
    error: Option<&'r str>,
}

impl Report {
    fn json(&self) -> String {
        let message = self.message.as_ref();
        let (result, state, failure) = match &self.outcome {
            Ok(Enqueued::Queued) => ("queued", None, None),
            Ok(Enqueued::AlreadyThere(state)) => ("already_there", Some(*state), None),
            Err(failure) => ("failed", None, Some(failure)),
        };
        let json = Json {
            file: &self.file,
            id: message.map(|message| message.id.as_str()),
            mailbox: message.map(MailMessage::mailbox),
            recipients: message.map(|message| message.envelope.to().len()),
            result,
            state,
            reason: failure.map(|failure| failure.reason),
            error: failure.map(|failure| failure.error.as_str()),
        };
        serde_json::to_string(&json).unwrap_or_default()
    }

    fn line(&self) -> String {
        let what = match (&self.outcome, &self.message) {
            (Err(failure), _) => format!("failed: {}", failure.error),
            (Ok(Enqueued::Queued), Some(message)) => {
                let recipients = u64::try_from(message.envelope.to().len()).unwrap_or(u64::MAX);
                format!(
                    "queued as {}, from {} to {}",
                    message.id,
                    message.mailbox(),
                    counted(recipients, "recipient")
                )
            }
            (Ok(Enqueued::AlreadyThere(state)), Some(message)) => {
                format!("already there as {} ({state}), not queued again", message.id)
            }
            (Ok(_), None) => "queued".into(),
        };
        format!("{}: {what}", self.file)
    }
}

/// How many files came to which end.
#[derive(Default)]
struct Tally {
    queued: u64,
    already_there: u64,
    failed: u64,
}

impl Tally {
    fn add(&mut self, report: &Report) {
        *match report.outcome {
            Ok(Enqueued::Queued) => &mut self.queued,
            Ok(Enqueued::AlreadyThere(_)) => &mut self.already_there,
            Err(_) => &mut self.failed,
        } += 1;
    }

    fn summary(&self) -> String {
        let Self {
            queued,
            already_there,
            failed,
        } = self;
        format!(
            "{}: {queued} queued, {already_there} already there, {failed} failed",
            counted(queued + already_there + failed, "mail")
        )
    }

    fn exit(&self) -> Exit {
        if self.failed > 0 { Exit::Failed } else { Exit::Done }
    }
}
