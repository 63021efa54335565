//! `mailrl send`: mail out of files, through the brake, one after another.
//!
//! | file | subject |
//! | --- | --- |
//! | `report` | what became of each file |
//! | `wait` | waiting for a mail's turn |

mod report;
mod wait;

use std::sync::Arc;

use lettre::{Address, AsyncTransport};
use mailrl_client::{Lane, MailRateLimiter, Mailbox, RateLimitedError, RateLimitedGraphMailer};
use mailrl_mailer::{EnvelopeError, GraphError, MicrosoftGraphMailer};

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::interruption::Interruption;
use crate::log::{RedisTrouble, Trouble};
use crate::mail_file::{Mail, MailFileError, Source};
use crate::terminal::Terminal;
use report::{Cost, Outcome, Report, Tally};
use wait::wait_for;

/// Sends the files, and says what became of each.
pub async fn run(
    args: args::Send,
    mut config: Config,
    terminal: &Terminal,
    trouble: RedisTrouble,
) -> Result<Exit, ConfigError> {
    config.prefer_graph(args.graph);
    let mailer = config.graph_mailer()?;
    let limiter = config.limiter()?;
    let interruption = Interruption::listen().map_err(ConfigError::Signals)?;
    let (sources, repeated) = Source::list(args.files);
    for source in repeated {
        terminal.err(&format!("{source}: named twice, sent once"));
    }
    let sender = Sender {
        mailer,
        limiter,
        config,
        trouble,
        from: args.from.map(Arc::new),
        lane: match (args.lane.bulk, args.lane.urgent) {
            (true, _) => Some(Lane::Bulk),
            (_, true) => Some(Lane::Normal),
            _ => None,
        },
        waits: args.wait,
        terminal: terminal.clone(),
        interruption,
    };
    Ok(sender.send_all(&sources, args.json).await)
}

struct Sender {
    mailer: MicrosoftGraphMailer,
    limiter: MailRateLimiter,
    config: Config,
    trouble: RedisTrouble,
    from: Option<Arc<Address>>,
    /// Which mail leaves room for which; none: each mail says itself.
    lane: Option<Lane>,
    waits: bool,
    terminal: Terminal,
    interruption: Interruption,
}

impl Sender {
    async fn send_all(&self, sources: &[Source], json: bool) -> Exit {
        let mut tally = Tally::default();
        let mut is_heard = true;
        for source in sources {
            let report = if is_heard && self.interruption.signal().is_none() {
                self.send_file(source).await
            } else {
                Report::of(source, Outcome::Interrupted)
            };
            tally.add(&report);
            if let Err(error) = self.tell(&report, json)
                && is_heard
            {
                self.terminal.err(&format!(
                    "mailrl: nobody reads the results any more ({error}), so no more is sent"
                ));
                is_heard = false;
            }
        }
        self.mailer.shutdown().await;
        self.limiter.flush().await;
        let summary = tally.summary();
        if json {
            self.terminal.err(&summary);
        } else {
            let _ = self.terminal.out(&summary);
        }
        match self.interruption.signal() {
            // A signal that came when all was done has changed nothing.
            Some(signal) if tally.exit() != Exit::Done => Exit::Interrupted(signal),
            _ if !is_heard => Exit::Failed,
            _ => tally.exit(),
        }
    }

    async fn send_file(&self, source: &Source) -> Report {
        let Mail { content, envelope } = match self.read(source).await {
            Some(Ok(mail)) => mail,
            Some(Err(error)) => return Report::of(source, error.into()),
            None => return Report::of(source, Outcome::Interrupted),
        };
        let Some(mailbox) = envelope.from().map(Mailbox::from) else {
            return Report::of(source, MailFileError::from(EnvelopeError::NoSender).into());
        };
        let mut mailer = RateLimitedGraphMailer::new(self.mailer.clone(), self.limiter.clone())
            .with_limits(self.config.limits(&mailbox));
        if let Some(lane) = self.lane {
            mailer = mailer.with_lane(lane);
        }
        let mut waits = 0;
        let (outcome, fail_open) = loop {
            let (outcome, fail_open) = self.braked(mailer.send_raw(&envelope, &content)).await;
            match outcome {
                Outcome::Deferred(wait) if self.waits => {
                    waits += 1;
                    let file = source.to_string();
                    if !wait_for(&wait, &file, &mailbox, &self.terminal, &self.interruption).await {
                        break (outcome, fail_open);
                    }
                }
                _ => break (outcome, fail_open),
            }
        };
        Report {
            cost: Some(Cost {
                mailbox,
                recipients: envelope.to().len(),
            }),
            fail_open,
            waits,
            ..Report::of(source, outcome)
        }
    }

    /// Reads the mail, unless the command is asked to end while a pipe has nothing to say.
    async fn read(&self, source: &Source) -> Option<Result<Mail, MailFileError>> {
        let source = source.clone();
        let from = self.from.clone();
        let reading = tokio::task::spawn_blocking(move || source.read(from.as_deref()));
        tokio::select! {
            read = reading => match read {
                Ok(read) => Some(read),
                Err(error) => Some(Err(MailFileError::Unreadable(std::io::Error::other(error)))),
            },
            () = self.interruption.asked() => None,
        }
    }

    /// What becomes of a send, and why Redis gave no decision if it went out without one. The first
    /// signal lets it come to its end, the second does not.
    async fn braked<T>(
        &self,
        send: impl Future<Output = Result<T, RateLimitedError<GraphError>>>,
    ) -> (Outcome, Option<Trouble>) {
        // Only this file is under way, so what is counted is its.
        let before = self.limiter.counts().fail_open;
        let outcome = tokio::select! {
            ended = send => match ended {
                Ok(_) => Outcome::Sent,
                Err(error) => error.into(),
            },
            () = self.interruption.asked_again() => Outcome::Unknown {
                reason: "stopped",
                error: "the second signal stopped it half way".into(),
            },
        };
        let has_failed_open = self.limiter.counts().fail_open > before;
        let may_be_out = matches!(outcome, Outcome::Sent | Outcome::Unknown { .. });
        let fail_open = (has_failed_open && may_be_out).then(|| self.trouble.last());
        (outcome, fail_open)
    }

    fn tell(&self, report: &Report, json: bool) -> std::io::Result<()> {
        if let Some(warning) = report.warning() {
            self.terminal.err(&warning);
        }
        if json {
            return self.terminal.out(&report.json());
        }
        if report.is_sent() {
            return self.terminal.out(&report.line());
        }
        self.terminal.err(&report.line());
        Ok(())
    }
}

impl Report {
    /// A report on a file that came to this end at once.
    fn of(source: &Source, outcome: Outcome) -> Self {
        Self {
            file: source.to_string(),
            cost: None,
            outcome,
            fail_open: None,
            waits: 0,
        }
    }
}
