//! What operators do with a mailbox: `limits`, `pause`, `resume`.

use std::time::Duration;

use clap::{ArgAction, Args as Group};

use super::values::pause;
use crate::exit;

const LIMITS_NOTES: &str = "\
Examples:
  mailrl limits news@example.com                     show them
  mailrl limits news@example.com --per-minute 10     slower, from now on
  mailrl limits news@example.com --reset             as configured again
  mailrl limits --json news@example.com | jq .overrides.per_minute

With --json, one object: mailbox, overrides (per_minute, recipients_per_day,
concurrent; null where there is none) and defaults (per_minute,
recipients_per_day); or mailbox, reason and error.";

const PAUSE_NOTES: &str = "\
Examples:
  mailrl pause news@example.com 10m
  mailrl pause news@example.com 1h30m
  mailrl resume news@example.com                     end it before its time";

const RESUME_NOTES: &str = "\
Example:
  mailrl resume news@example.com orders@example.com";

/// Show or set what a mailbox is held to, whatever its senders ask for
///
/// An override holds for all senders from their next mail on, goes before what they ask for and before
/// the module's configuration, and stays until --reset. Those that are not given stay as they are.
#[derive(Group)]
#[command(after_help = format!("{LIMITS_NOTES}\n\n{}", exit::HELP))]
pub struct Limits {
    /// The mailbox
    #[arg(value_name = "MAILBOX")]
    pub mailbox: String,

    #[command(flatten)]
    pub change: LimitsChange,

    /// Print one JSON object
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,
}

/// What is to be held from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Group)]
pub struct LimitsChange {
    /// Messages a minute, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_minute: Option<u32>,

    /// Recipients a day, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub recipients_per_day: Option<u32>,

    /// Sends at once, 1 to 1024
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrent: Option<u32>,

    /// Drop all overrides
    #[arg(
        long,
        action = ArgAction::SetTrue,
        conflicts_with_all = ["per_minute", "recipients_per_day", "concurrent"]
    )]
    pub reset: bool,
}

/// Let nobody send from a mailbox for a while
///
/// It holds for all senders at once; mail under way comes to its end. Where a longer pause is there
/// already, that one stays.
#[derive(Group)]
#[command(after_help = format!("{PAUSE_NOTES}\n\n{}", exit::HELP))]
pub struct Pause {
    /// The mailbox
    #[arg(value_name = "MAILBOX")]
    pub mailbox: String,

    /// For how long, as 90s, 10m or 1h30m; up to 24h
    #[arg(value_name = "DURATION", value_parser = pause)]
    pub duration: Duration,
}

/// End the pause of mailboxes
///
/// Whoever paused them, and if they are paused at all.
#[derive(Group)]
#[command(after_help = format!("{RESUME_NOTES}\n\n{}", exit::HELP))]
pub struct Resume {
    /// Mailboxes
    #[arg(required = true, value_name = "MAILBOX")]
    pub mailboxes: Vec<String>,
}
