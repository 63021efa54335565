//! The queue: `enqueue` and `queue`.

use std::path::PathBuf;

use clap::{ArgAction, Args as Group, Subcommand, ValueEnum};
use lettre::Address;
use mailrl_mailer::{MessageId, MessageState};

use crate::exit;

const ENQUEUE_NOTES: &str = "\
A mail is known by its Message-ID (without the angle brackets), unless --id says
otherwise; one that has none gets an id of its own. What was queued before under
the same id is not queued again, so a command that was cut off can be repeated.

Examples:
  mailrl enqueue outbox/*.eml
  mailrl enqueue --tenant contoso invoice.eml
  mailrl enqueue --id invoice-4711 invoice.eml
  generate-mail | mailrl enqueue -
  mailrl enqueue --json *.eml | jq -r 'select(.result == \"failed\").file'

With --json, one object for each file:
  file, id, mailbox, recipients  null where the file holds no mail
  result  queued | already_there | failed
  state   already_there: PENDING | SCHEDULED | SENDING | SENT | UNKNOWN | FAILED
  reason  failed: unreadable | empty | not_a_mail | no_sender | no_recipient |
            bad_address | too_big | queue
  error   failed: what happened, for people";

const QUEUE_NOTES: &str = "\
Examples:
  mailrl queue                                  what waits, until when, and why
  mailrl queue --state unknown                  what a person has to decide on
  mailrl queue --mailbox news@example.com --json | jq -r .id
  mailrl queue show invoice-4711                what happened to a message
  mailrl queue send invoice-4711                send it (again), now
  mailrl queue sent invoice-4711                it was sent: leave it
  mailrl queue drop invoice-4711                do not send it

States:
  PENDING    a worker will take it next
  SCHEDULED  it waits for its time
  SENDING    a worker sends it right now
  UNKNOWN    it may have been sent; nothing happens until a person decides
  FAILED     it was not sent and will not be; forgotten after 7 days
  SENT       it was sent; shown by its id only, forgotten after 7 days

With --json, one object for each message: id, state, mailbox, tenant, until
(RFC 3339, null if it waits for no time), reason, denials, failures, created_at;
with show also history (at, state, reason).";

/// Put mails into the queue, to be sent by workers as soon as their mailboxes may
///
/// The sender is the first address in Sender or From, and the mailbox that pays; the recipients are
/// To, Cc and Bcc. A mail that cannot be queued holds up no other.
#[derive(Group)]
#[command(after_help = format!("{ENQUEUE_NOTES}\n\n{}", exit::HELP))]
pub struct Enqueue {
    /// Mails as MIME (RFC 5322), - for standard input
    #[arg(required = true, value_name = "FILE.eml")]
    pub files: Vec<PathBuf>,

    /// Send as this tenant, by its name in the workers' configuration; else from a mailbox of our own
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,

    /// Send from this mailbox, whatever the files say
    #[arg(long, value_name = "MAILBOX")]
    pub from: Option<Address>,

    /// What the message is called; for one file
    #[arg(long, value_name = "ID")]
    pub id: Option<MessageId>,

    /// Print one JSON object for each file, and the summary on stderr
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,

    #[command(flatten)]
    pub place: QueuePlace,
}

/// Show what waits in the queue, until when and why, and decide on it
#[derive(Group)]
#[command(args_conflicts_with_subcommands = true, after_help = format!("{QUEUE_NOTES}\n\n{}", exit::HELP))]
pub struct Queue {
    #[command(subcommand)]
    pub command: Option<QueueCommand>,

    #[command(flatten)]
    pub list: List,
}

#[derive(Subcommand)]
pub enum QueueCommand {
    /// Show all that is known of a message, and what happened to it
    Show(Show),
    /// Send messages now, that wait, failed or may have been sent
    Send(Decide),
    /// Leave messages alone that may have been sent, for they were
    Sent(Decide),
    /// Do not send messages that wait or may have been sent, and delete their mails
    Drop(Decide),
}

/// Which messages are listed.
#[derive(Group)]
pub struct List {
    /// Only messages in this state; may be given several times
    #[arg(long = "state", value_name = "STATE", ignore_case = true)]
    pub states: Vec<State>,

    /// Only messages of this mailbox
    #[arg(long, value_name = "MAILBOX")]
    pub mailbox: Option<String>,

    /// So many at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,

    /// Print one JSON object for each message
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,

    #[command(flatten)]
    pub place: QueuePlace,
}

#[derive(Group)]
pub struct Show {
    /// The message
    #[arg(value_name = "ID")]
    pub id: MessageId,

    /// Print one JSON object
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,

    #[command(flatten)]
    pub place: QueuePlace,
}

#[derive(Group)]
pub struct Decide {
    /// Messages
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<MessageId>,

    #[command(flatten)]
    pub place: QueuePlace,
}

/// Where the queue is.
#[derive(Group)]
#[command(next_help_heading = "The queue")]
pub struct QueuePlace {
    #[command(flatten)]
    pub records: RecordsPlace,

    /// Where mails are kept while they wait: file:///folder, s3://bucket/prefix or az://container/prefix
    /// [default: the folder mailrl/mails in $XDG_DATA_HOME, else in ~/.local/share]
    #[arg(long, env = "MAILRL_STORE", value_name = "URL")]
    pub store: Option<String>,
}

/// Where what is known of the queue's messages stands, without the mails.
#[derive(Group)]
#[command(next_help_heading = "The queue")]
pub struct RecordsPlace {
    /// Redis of the queue [default: that of --redis]
    #[arg(long, env = "MAILRL_QUEUE_REDIS", hide_env_values = true, value_name = "URL")]
    pub queue_redis: Option<String>,

    /// What the queue's keys in Redis begin with, as BullMQ's own prefix [default: bull]
    #[arg(long, env = "MAILRL_QUEUE_PREFIX", value_name = "PREFIX")]
    pub queue_prefix: Option<String>,
}

/// A state that messages are listed by.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum State {
    Pending,
    Scheduled,
    Sending,
    Unknown,
    Failed,
}

impl From<State> for MessageState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Scheduled => Self::Scheduled,
            State::Sending => Self::Sending,
            State::Unknown => Self::Unknown,
            State::Failed => Self::Failed,
        }
    }
}
