//! `worker`.

use clap::Args as Group;

use super::{Graph, QueuePlace};
use crate::exit;

const NOTES: &str = "\
The first Ctrl-C or SIGTERM lets it finish what is under way, the second ends it at
once. The configuration file is looked at twice a second: a changed limit of a mailbox
holds for its next mail. What becomes of each mail is logged on stderr (--log info is
the default here), with --log-format json for machines.

Examples:
  mailrl worker                                 as many as you like, anywhere
  mailrl worker --concurrency 200
  mailrl worker --queue-redis redis://queue:6379 --store s3://mails/waiting";

/// Send the messages of the queue, each when its time has come
///
/// Needs the account of Microsoft Graph or SendGrid in the configuration file, see
/// mailrl.example.toml, and the same queue and store as those who enqueue.
#[derive(Group)]
#[command(after_help = format!("{NOTES}\n\n{}", exit::HELP))]
pub struct Worker {
    /// How many messages it sends at once, 1 to 10000 [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: Option<u32>,

    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub graph: Graph,
}
