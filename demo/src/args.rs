//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use crate::Failure;

/// The campaign has used up its minute by then, and waits.
const SINGLES_AFTER: Duration = Duration::from_secs(5);

const HELP: &str = "\
It starts a redis-server with the module and a simulator of Microsoft Graph, on free
ports and in a temporary folder, and ends both. Nothing leaves this machine.

Exit codes: 0 all is as it should be, 1 it is not (a 429, a mail that is missing or came
twice, or it could not run), 2 wrong usage, 130 Ctrl-C or SIGTERM.";

/// Shows what mailrl does: a campaign of 36 mails from one mailbox that takes 30 a minute, and 8 single
/// mails from others, through a queue and two workers; then the campaign without the brake.
#[derive(Parser)]
#[command(name = "demo", version, after_help = HELP, max_term_width = 100)]
pub struct Args {
    /// The Redis module
    #[arg(long, value_name = "FILE", default_value = "target/release/libmailrl.so")]
    pub module: PathBuf,

    /// The command that sends
    #[arg(long, value_name = "FILE", default_value = "target/release/mailrl")]
    pub mailrl: PathBuf,

    /// The folder with the sample mails
    #[arg(long, value_name = "FOLDER", default_value = "tests/mail")]
    pub mail: PathBuf,

    /// Send 8 mails only, which no limit stops: over in seconds
    #[arg(long)]
    pub quick: bool,
}

impl Args {
    /// How many mails the campaign has.
    pub fn campaign(&self) -> usize {
        if self.quick { 6 } else { 36 }
    }

    /// How many mails others send.
    pub fn singles(&self) -> usize {
        if self.quick { 2 } else { 8 }
    }

    /// When those come.
    pub fn singles_after(&self) -> Duration {
        if self.quick { Duration::ZERO } else { SINGLES_AFTER }
    }

    /// Says what is missing before anything is started.
    pub fn check(&self) -> Result<(), Failure> {
        for (flag, path) in [("--module", &self.module), ("--mailrl", &self.mailrl)] {
            if !path.is_file() {
                return Err(missing(flag, path, "build it with `cargo build --release --workspace`").into());
            }
        }
        if !self.mail.is_dir() {
            return Err(missing("--mail", &self.mail, "run it from the root of the sources").into());
        }
        Ok(())
    }
}

fn missing(flag: &str, path: &Path, remedy: &str) -> String {
    format!("there is no {}: {remedy}, or name it with {flag}", path.display())
}
