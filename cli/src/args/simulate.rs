//! `mailrl simulate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args as Group, ValueEnum};

use super::path;
use super::values::{Pods, duration, durations, pods, recipients, some_time};
use crate::exit;

const NOTES: &str = "\
Examples:
  mailrl simulate --bulk 100 --urgent-every 7m --plot campaign.svg
  mailrl simulate --backlog 2571 --recipients 1..20 --recipients-per-day 9000

Without flags it is a campaign of 10,000 mails to one recipient each, that all
wait at the start, at 25 a minute in rolling windows.";

/// Play a campaign in virtual time, and show how long it takes
///
/// Each decision is made by the code that the module runs; clock, queue and senders are played. It needs
/// neither Redis nor Graph, and the same flags give the same figures every time.
#[derive(Group)]
#[command(after_help = format!("{NOTES}\n\n{}", exit::HELP))]
pub struct Simulate {
    /// Mails that wait at the start, up to 1,000,000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub backlog: u32,

    /// How many of them are bulk mail, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    pub bulk: u32,

    /// Recipients of each, a number or a range as 1..20
    #[arg(long, value_name = "RANGE", default_value = "1", value_parser = recipients)]
    pub recipients: RangeInclusive<u32>,

    /// The limit of messages a minute
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub per_minute: u32,

    /// The limit of recipients a day [default: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub recipients_per_day: Option<u32>,

    /// How windows are cut
    #[arg(long, value_name = "KIND", default_value = "rolling")]
    pub window: Window,

    /// Give all who are denied the same time, and not each a turn
    #[arg(long, action = ArgAction::SetTrue)]
    pub no_pacing: bool,

    /// What senders add to the time that they are given, by the mail's id, at most
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub spread: Duration,

    /// Pods and the senders in each
    #[arg(long, value_name = "PODSxSENDERS", default_value = "2x10", value_parser = pods)]
    pub pods: Pods,

    /// Sends at once from the mailbox, 1 to 1024 [default: as many as there are senders]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrent: Option<u32>,

    /// How long a mail takes to Graph, as 2s or 100ms..3s
    #[arg(long, value_name = "RANGE", default_value = "0s", value_parser = durations)]
    pub send_time: RangeInclusive<Duration>,

    /// A mail that somebody waits for, again and again, as long as other mail waits
    #[arg(long, value_name = "DURATION", value_parser = some_time)]
    pub urgent_every: Option<Duration>,

    /// When the campaign is called off: what is left of it never comes again
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub called_off_after: Option<Duration>,

    /// What all that is random starts from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Draw it, too
    #[arg(long, value_name = "FILE.svg", value_parser = path())]
    pub plot: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Window {
    Calendar,
    Rolling,
}
