//! The command line.
#![expect(
    clippy::doc_markdown,
    reason = "these comments are the help, which is read in a terminal"
)]

mod operate;
mod queue;
mod shell;
mod simulate;
mod values;
mod watch;
mod worker;

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args as Group, Parser, Subcommand, ValueEnum};
use lettre::Address;

use crate::exit;
pub use operate::{Limits, LimitsChange, Pause, Resume};
pub use queue::{Enqueue, List, Queue, QueueCommand, QueuePlace, RecordsPlace, Show};
pub use shell::{Completions, Man};
pub use simulate::{Simulate, Window};
pub use values::pause;
pub use watch::Watch;
pub use worker::Worker;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("MAILRL_COMMIT"), ")");

const CONFIGURATION: &str = "\
Configuration:
  A flag goes before the environment, and that before the file: --config, else
  ./mailrl.toml, else $XDG_CONFIG_HOME/mailrl/config.toml. All its keys stand in
  mailrl.example.toml in the sources. A password for Redis is better off in the
  environment or the file, where no list of processes shows it.";

const SEND_NOTES: &str = "\
The client secret comes from MAILRL_CLIENT_SECRET or a file, never from a flag.

Examples:
  mailrl send mail.eml                          now, or say when it may go
  mailrl send --wait outbox/*.eml               each as soon as it may
  mailrl send --from news@example.com a.eml     from this mailbox
  mailrl send --wait --bulk campaign/*.eml      behind the mail that is waited for
  generate-mail | mailrl send -                 from a pipe
  mailrl send --json *.eml | jq 'select(.result != \"sent\")'

With --json, one object for each file:
  file, mailbox, recipients  the latter two null if the file holds no mail
  result          sent | deferred | failed | unknown
  reason          deferred: minute | day | concurrent | paused | upstream |
                    interrupted
                  failed, unknown: unreadable | empty | not_a_mail | no_sender |
                    no_recipient | bad_address | too_big | too_many_recipients |
                    mail | token | timeout | connection | graph | stopped
  retry_after_ms  deferred: how long to wait
  not_before      deferred: until when that is (RFC 3339)
  error           failed, unknown: what happened, for people
  fail_open       null, or why Redis gave no decision and the mail went out
                  without the brake
  waits           how often --wait waited for it";

const STATUS_NOTES: &str = "\
Examples:
  mailrl status news@example.com
  mailrl status --json news@example.com orders@example.com | jq .minute.used";

/// Sends mail through Microsoft Graph under the budget of its mailbox, together with all other
/// processes that send from it, and shows how much is left.
#[derive(Parser)]
#[command(
    name = "mailrl",
    version = VERSION,
    after_help = format!("{CONFIGURATION}\n\n{}", exit::HELP),
    max_term_width = 100
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub log: Log,
}

impl Command {
    /// What is logged unless told otherwise.
    pub fn usual_log(&self) -> &'static str {
        match self {
            Self::Online(Online::Worker(_)) => "warn,mailrl_client=info,mailrl_mailer=info",
            // A line on stderr would stand across the picture.
            Self::Online(Online::Watch(_)) => "off",
            _ => "warn",
        }
    }
}

#[derive(Subcommand)]
pub enum Command {
    #[command(flatten)]
    Online(Online),
    Simulate(Simulate),
    Completions(Completions),
    Man(Man),
}

/// What needs the configuration, and Redis or Graph.
#[derive(Subcommand)]
pub enum Online {
    Send(Send),
    Enqueue(Enqueue),
    Queue(Queue),
    Worker(Worker),
    Status(Status),
    Limits(Limits),
    Pause(Pause),
    Resume(Resume),
    Watch(Watch),
}

/// Where Redis and the configuration are.
#[derive(Group)]
#[command(next_help_heading = "Everywhere")]
pub struct Place {
    /// Configuration file
    #[arg(long, env = "MAILRL_CONFIG", value_name = "FILE", value_parser = path(), global = true)]
    pub config: Option<PathBuf>,

    /// Redis, as redis://[user:password@]host:port[/database], or rediss:// over TLS
    /// [default: redis://127.0.0.1:6379]
    #[arg(
        long,
        env = "MAILRL_REDIS",
        hide_env_values = true,
        value_name = "URL",
        global = true
    )]
    pub redis: Option<String>,
}

/// What is logged, and how.
#[derive(Group)]
#[command(next_help_heading = "Everywhere")]
pub struct Log {
    /// What is logged on stderr: off, error, warn, info, debug or trace, or as mailrl_client=debug
    /// [default: warn; of a worker what becomes of each mail, too; off while watching]
    #[arg(long, env = "MAILRL_LOG", value_name = "LEVEL", global = true)]
    pub log: Option<String>,

    /// How it is logged: a line for people (text), or one JSON object a line (json)
    #[arg(
        long,
        env = "MAILRL_LOG_FORMAT",
        hide_possible_values = true,
        value_name = "FORMAT",
        default_value = "text",
        global = true
    )]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Send mails, each as soon as its mailbox may
///
/// The sender is the first address in Sender or From, and the mailbox that pays; the recipients are
/// To, Cc and Bcc. A mail that its mailbox has no budget for is not sent, and the time from which it
/// may go is shown; with --wait it is sent then. One that cannot be sent holds up no other.
///
/// Without Redis mail is sent all the same, and each mail says so.
#[derive(Group)]
#[command(after_help = format!("{SEND_NOTES}\n\n{}", exit::HELP))]
pub struct Send {
    /// Mails as MIME (RFC 5322), - for standard input; one that is named twice is sent once
    #[arg(required = true, value_name = "FILE.eml")]
    pub files: Vec<PathBuf>,

    /// Wait until each mail may go
    #[arg(long, short)]
    pub wait: bool,

    /// Send from this mailbox, whatever the files say
    #[arg(long, value_name = "MAILBOX")]
    pub from: Option<Address>,

    #[command(flatten)]
    pub lane: Lane,

    /// Print one JSON object for each file, and the summary on stderr
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,

    #[command(flatten)]
    pub graph: Graph,
}

/// Which mail leaves room for which.
#[derive(Group)]
pub struct Lane {
    /// Send all as mail that can wait, which leaves the last part of each window to other mail; else
    /// each mail says itself what it is (Precedence, List-Unsubscribe, Importance)
    #[arg(long, action = ArgAction::SetTrue, conflicts_with = "urgent")]
    pub bulk: bool,

    /// Send all as mail that somebody waits for, whatever it says itself
    #[arg(long, action = ArgAction::SetTrue)]
    pub urgent: bool,
}

/// How Microsoft Graph is reached.
#[derive(Clone, Group)]
#[command(next_help_heading = "Microsoft Graph")]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct Graph {
    /// The tenant: its id or one of its domains
    #[arg(long, env = "MAILRL_TENANT")]
    pub tenant: Option<String>,

    /// The app's client id; it needs the application permission Mail.Send
    #[arg(long, env = "MAILRL_CLIENT_ID", value_name = "ID")]
    pub client_id: Option<String>,

    /// File with the client secret, where MAILRL_CLIENT_SECRET is not set
    #[arg(long, env = "MAILRL_CLIENT_SECRET_FILE", value_name = "FILE", value_parser = path())]
    pub client_secret_file: Option<PathBuf>,

    /// Where tokens come from [default: https://login.microsoftonline.com]
    #[arg(long, env = "MAILRL_LOGIN_URL", value_name = "URL")]
    pub login_url: Option<String>,

    /// Where mail goes to [default: https://graph.microsoft.com]
    #[arg(long, env = "MAILRL_GRAPH_URL", value_name = "URL")]
    pub graph_url: Option<String>,

    /// How long one send may take in all, in seconds, 1 to 3590 [default: 30]
    #[arg(long, env = "MAILRL_TIMEOUT_S", value_name = "SECONDS")]
    pub timeout_s: Option<u64>,
}

/// Show what mailboxes have used, what they may use, and when room comes
#[derive(Group)]
#[command(after_help = format!("{STATUS_NOTES}\n\n{}", exit::HELP))]
pub struct Status {
    /// Mailboxes
    #[arg(required = true, value_name = "MAILBOX")]
    pub mailboxes: Vec<String>,

    /// Print one JSON object for each mailbox; windows and pause in ms from now
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,
}

/// A path that may be empty, as an empty variable gives it; clap's own parser refuses such.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
