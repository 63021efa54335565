//! The command line.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::Failure;

const HELP: &str = "\
It starts a redis-server with the module and a simulator of Microsoft Graph, on free
ports and in a temporary folder, and ends both. Nothing leaves this machine.

Exit codes: 0 all is as it should be, 1 it is not (a 429, a mail that is missing or came
twice, or it could not run), 2 wrong usage, 130 Ctrl-C or SIGTERM.";

/// Shows what the brake does: two processes send 40 mails at once from one mailbox that takes 30 a
/// minute, first with the brake, then without.
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

    /// Send 6 mails only, which no limit stops: over in seconds
    #[arg(long)]
    pub quick: bool,
}

impl Args {
    /// How many mails are sent.
    pub fn count(&self) -> usize {
        if self.quick { 6 } else { 40 }
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
