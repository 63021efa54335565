//! A queue, two workers, a busy mailbox, and not one 429: what mailrl is for, in two minutes.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `stage` | the Redis and the Graph that it plays on, and their end |
//! | `mails` | the mails, out of the samples |
//! | `queued` | the queue and two `mailrl worker` processes |
//! | `tool` | the command `mailrl` and its log |
//! | `unbraked` | the same mails without the brake |
//! | `progress` | what is shown meanwhile |
//! | `verdict` | what came of it |

mod args;
mod mails;
mod progress;
mod queued;
mod stage;
mod tool;
mod unbraked;
mod verdict;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::mails::Campaign;
use crate::stage::Stage;

/// What goes wrong, in words.
type Failure = Box<dyn Error + Send + Sync>;

/// After so long something hangs: it takes two minutes.
const GIVE_UP_AFTER: Duration = Duration::from_mins(4);

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
        Err(format!("given up after {minutes} minutes: it should take two").into())
    })
}

async fn acts(args: &Args, stage: &mut Option<Stage>) -> Result<ExitCode, Failure> {
    args.check()?;
    let stage = stage.insert(Stage::set(&args.module).await?);
    let campaign = Campaign::prepare(&args.mail, stage.folder(), args.campaign(), args.singles())?;
    say(&format!(
        "A campaign of {} mails from {}, and {} single mails from others: into the queue, and two workers send them.\n\
         Microsoft takes 30 mails in any 60 s from a mailbox, the brake lets 25 through.\n",
        campaign.mails.len(),
        queued::MAILBOX,
        campaign.singles.len()
    ))?;
    let queued = queued::send(args, stage, &campaign).await?;
    say("\nThe same campaign without the brake, from a mailbox of its own …\n")?;
    let unbraked = unbraked::send(stage, &campaign.mails).await?;
    let verdict = verdict::of(stage, &campaign, queued, unbraked);
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
