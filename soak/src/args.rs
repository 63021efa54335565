//! The command line.

use std::path::PathBuf;

use clap::Parser;

const HELP: &str = "\
It starts a redis-server with the module (that of MAILRL_MODULE, if it is set) and a
simulator of Microsoft Graph, on free ports of this machine, and ends both. After the
minutes it waits until the queue is empty, 6 minutes at most.

Exit codes: 0 the books balance, 1 they do not, or it could not run, 2 wrong usage, 130
Ctrl-C or SIGTERM.";

/// Sends mail through queue, workers and brake while Redis, the workers and Graph fail at random, and
/// then accounts for every message.
#[derive(Debug, Clone, Parser)]
#[command(name = "soak", version, after_help = HELP, max_term_width = 100)]
pub struct Args {
    /// How long mail is put in, 2 to 1440 minutes
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1440))]
    pub minutes: u32,

    /// Where all that is random starts from: a new one each time if left out
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// The command whose workers send
    #[arg(long, value_name = "FILE", default_value = "target/release/mailrl")]
    pub mailrl: PathBuf,
}
