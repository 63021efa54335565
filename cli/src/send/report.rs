//! What became of each file, as people and as programs read it.

use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;
use mailrl_client::{DenialReason, MailRateLimitExceeded, Mailbox, RateLimitedError};
use mailrl_mailer::GraphError;
use serde::Serialize;

use crate::exit::Exit;
use crate::log::Trouble;
use crate::mail_file::MailFileError;
use crate::words::{after, clock, counted, one_line, rfc3339, spoken};

/// What became of one file.
pub struct Report {
    pub file: String,
    /// Who pays and for how many, once the file was read.
    pub cost: Option<Cost>,
    pub outcome: Outcome,
    /// Why Redis gave no decision, if the mail went out all the same.
    pub fail_open: Option<Trouble>,
    /// How often its turn was waited for.
    pub waits: u32,
}

/// The mailbox that a mail is sent from, and its recipients.
#[derive(Clone)]
pub struct Cost {
    pub mailbox: Mailbox,
    pub recipients: usize,
}

pub enum Outcome {
    Sent,
    Deferred(Wait),
    /// Not sent, since the command was asked to end.
    Interrupted,
    Failed {
        reason: &'static str,
        error: String,
    },
    /// Sent or not, nobody knows.
    Unknown {
        reason: &'static str,
        error: String,
    },
}

/// What a mail waits for, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    pub reason: DenialReason,
    pub until: Timestamp,
}

impl Wait {
    pub fn left(&self) -> Duration {
        Duration::try_from(self.until.duration_since(Timestamp::now())).unwrap_or_default()
    }

    /// What stands in the way.
    pub fn why(&self, mailbox: &Mailbox) -> String {
        match self.reason {
            DenialReason::Minute => format!("{mailbox} has used up its messages of the minute"),
            DenialReason::Day => format!("{mailbox} has too few recipients left for the day"),
            DenialReason::Concurrent => format!("{mailbox} has as many mails under way as it may"),
            DenialReason::Paused => format!("{mailbox} is paused"),
            DenialReason::Upstream => format!("Microsoft Graph asks {mailbox} to wait"),
        }
    }
}

impl From<MailRateLimitExceeded> for Wait {
    fn from(exceeded: MailRateLimitExceeded) -> Self {
        Self {
            reason: exceeded.reason,
            until: after(exceeded.retry_after),
        }
    }
}

impl From<MailFileError> for Outcome {
    fn from(error: MailFileError) -> Self {
        Self::Failed {
            reason: error.reason(),
            error: error.to_string(),
        }
    }
}

impl From<RateLimitedError<GraphError>> for Outcome {
    fn from(error: RateLimitedError<GraphError>) -> Self {
        if let Some(exceeded) = error.exceeded() {
            return Self::Deferred((*exceeded).into());
        }
        let reason = reason(&error);
        let may_have_been_sent = error.may_have_been_sent();
        let error = one_line(&error.to_string());
        if may_have_been_sent {
            Self::Unknown { reason, error }
        } else {
            Self::Failed { reason, error }
        }
    }
}

fn reason(error: &RateLimitedError<GraphError>) -> &'static str {
    match error {
        RateLimitedError::TooLarge(_) => "too_many_recipients",
        RateLimitedError::NoSender => "no_sender",
        RateLimitedError::NoRecipients => "no_recipient",
        RateLimitedError::Exceeded(exceeded) => exceeded.reason.as_str(),
        RateLimitedError::Send(error) if error.is_mail() => "mail",
        RateLimitedError::Send(error) if error.is_token() => "token",
        RateLimitedError::Send(error) if error.is_timeout() => "timeout",
        RateLimitedError::Send(error) if error.is_connection() => "connection",
        RateLimitedError::Send(_) => "graph",
    }
}

/// The fields that `--json` promises.
#[derive(Serialize)]
struct Json<'r> {
    file: &'r str,
    mailbox: Option<&'r str>,
    recipients: Option<usize>,
    result: &'static str,
    reason: Option<&'static str>,
    retry_after_ms: Option<u64>,
    not_before: Option<String>,
    error: Option<&'r str>,
    fail_open: Option<&'r str>,
    waits: u32,
}

impl Report {
    pub fn json(&self) -> String {
        let wait = match &self.outcome {
            Outcome::Deferred(wait) => Some(wait),
            _ => None,
        };
        let (result, reason, error) = match &self.outcome {
            Outcome::Sent => ("sent", None, None),
            Outcome::Deferred(wait) => ("deferred", Some(wait.reason.as_str()), None),
            Outcome::Interrupted => ("deferred", Some("interrupted"), None),
            Outcome::Failed { reason, error } => ("failed", Some(*reason), Some(error.as_str())),
            Outcome::Unknown { reason, error } => ("unknown", Some(*reason), Some(error.as_str())),
        };
        let json = Json {
            file: &self.file,
            mailbox: self.cost.as_ref().map(|cost| cost.mailbox.as_str()),
            recipients: self.cost.as_ref().map(|cost| cost.recipients),
            result,
            reason,
            retry_after_ms: wait.map(|wait| whole_milliseconds(wait.left())),
            not_before: wait.map(|wait| rfc3339(wait.until)),
            error,
            fail_open: self.fail_open.as_ref().map(|trouble| trouble.cause.as_str()),
            waits: self.waits,
        };
        serde_json::to_string(&json).unwrap_or_default()
    }

    pub fn line(&self) -> String {
        let what = match (&self.outcome, &self.cost) {
            (Outcome::Sent, Some(Cost { mailbox, recipients })) => {
                let recipients = u64::try_from(*recipients).unwrap_or(u64::MAX);
                format!("sent from {mailbox} to {}", counted(recipients, "recipient"))
            }
            (Outcome::Sent, None) => "sent".into(),
            (Outcome::Deferred(wait), cost) => {
                let when = format!("{} (in {})", clock(wait.until), spoken(wait.left()));
                let why = cost.as_ref().map_or_else(String::new, |cost| {
                    format!(": {} ({})", wait.why(&cost.mailbox), wait.reason)
                });
                format!("deferred, may go at {when}{why}")
            }
            (Outcome::Interrupted, _) => "not sent, interrupted before its turn".into(),
            (Outcome::Failed { error, .. }, _) => format!("failed: {error}"),
            (Outcome::Unknown { error, .. }, _) => {
                format!(
                    "unknown, may have been sent, and is not sent again: {error}. Please look for it in the mailbox's \
                     sent mail"
                )
            }
        };
        format!("{}: {what}", self.file)
    }

    /// That it went out without the brake, if it did.
    pub fn warning(&self) -> Option<String> {
        let trouble = self.fail_open.as_ref()?;
        let Trouble { cause, error } = trouble;
        let file = &self.file;
        Some(format!(
            "{file}: warning: went out without the brake, since Redis gave no decision ({cause}: {error})"
        ))
    }

    pub fn is_sent(&self) -> bool {
        matches!(self.outcome, Outcome::Sent)
    }
}

fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// How many files came to which end.
#[derive(Default)]
pub struct Tally {
    sent: u64,
    deferred: u64,
    interrupted: u64,
    failed: u64,
    unknown: u64,
    fail_open: u64,
}

impl Tally {
    pub fn add(&mut self, report: &Report) {
        let count = match report.outcome {
            Outcome::Sent => &mut self.sent,
            Outcome::Deferred(_) => &mut self.deferred,
            Outcome::Interrupted => &mut self.interrupted,
            Outcome::Failed { .. } => &mut self.failed,
            Outcome::Unknown { .. } => &mut self.unknown,
        };
        *count += 1;
        self.fail_open += u64::from(report.fail_open.is_some());
    }

    pub fn summary(&self) -> String {
        let all = self.sent + self.deferred + self.interrupted + self.failed + self.unknown;
        let mut summary = format!(
            "{}: {} sent, {} deferred, {} failed, {} unknown",
            counted(all, "mail"),
            self.sent,
            self.deferred + self.interrupted,
            self.failed,
            self.unknown
        );
        if self.interrupted > 0 {
            let _ = write!(summary, " ({} of the deferred interrupted)", self.interrupted);
        }
        if self.fail_open > 0 {
            let _ = write!(summary, "; {} went out without the brake", self.fail_open);
        }
        summary
    }

    /// How the command ends, if nothing interrupted it.
    pub fn exit(&self) -> Exit {
        if self.unknown > 0 {
            Exit::Unknown
        } else if self.failed > 0 {
            Exit::Failed
        } else if self.deferred + self.interrupted > 0 {
            Exit::Deferred
        } else {
            Exit::Done
        }
    }
}
