//! Two processes, one mailbox, and not one 429: what the brake is for, in two minutes.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `stage` | the Redis and the Graph that it plays on, and their end |
//! | `mails` | the mails, out of the samples |
//! | `braked` | two `mailrl send` processes |
//! | `unbraked` | the same mails without the brake |
//! | `progress` | what is shown meanwhile |
//! | `verdict` | what came of it |

mod args;
mod braked;
mod mails;
mod progress;
mod stage;
mod unbraked;
mod verdict;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::stage::Stage;

/// What goes wrong, in words.
type Failure = Box<dyn Error + Send + Sync>;

/// After so long something hangs: it takes 65 s.
const GIVE_UP_AFTER: Duration = Duration::from_mins(3);

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match play(&args).await {
        Ok(code) => code,
        Err(failure) => {
            say_on_stderr(&format!("demo: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Plays the demo and clears the stage, also when it is interrupted.
async fn play(args: &Args) -> Result<ExitCode, Failure> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut stage = None;
    let ended = tokio::select! {
        ended = tokio::time::timeout(GIVE_UP_AFTER, acts(args, &mut stage)) => ended,
        _ = interrupted.recv() => Ok(Ok(ExitCode::from(130))),
        _ = terminated.recv() => Ok(Ok(ExitCode::from(130))),
    };
    if let Some(stage) = stage {
        stage.clear().await?;
    }
    ended.unwrap_or_else(|_| {
        let minutes = GIVE_UP_AFTER.as_secs() / 60;
        Err(format!("given up after {minutes} minutes: it should take one").into())
    })
}

async fn acts(args: &Args, stage: &mut Option<Stage>) -> Result<ExitCode, Failure> {
    args.check()?;
    let stage = stage.insert(Stage::set(&args.module).await?);
    let mails = mails::prepare(&args.mail, stage.folder(), args.count())?;
    say(&format!(
        "{} mails, two processes, one mailbox: {}\n\
         Microsoft takes 30 mails in any 60 s from it, the brake lets 25 through.\n",
        mails.len(),
        braked::MAILBOX
    ))?;
    let braked = braked::send(args, stage, &mails).await?;
    say("\nThe same mails without the brake, from a mailbox of their own …\n")?;
    let unbraked = unbraked::send(stage, &mails).await?;
    let verdict = verdict::of(stage, &mails, braked, unbraked);
    say(&verdict.to_string())?;
    Ok(if verdict.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// There is nobody to tell if it fails.
fn say_on_stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
