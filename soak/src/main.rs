//! Mail through queue, workers and brake while Redis, the workers and Graph fail at random; then the
//! books are balanced.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `mailboxes` | the mailboxes, and how much mail goes out of them |
//! | `plan` | what goes wrong when, out of the seed |
//! | `scene` | Redis, Graph and workers, and what is done to them |
//! | `crew` | the `mailrl worker` processes |
//! | `post` | mail into the queue |
//! | `journal` | what happened meanwhile |
//! | `run` | a run from its start until the queue is empty |
//! | `books` | whether all of it adds up |

mod args;
mod books;
mod crew;
mod journal;
mod mailboxes;
mod plan;
mod post;
mod run;
mod scene;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::scene::Scene;

/// What goes wrong with the run itself, in words.
type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    say(&format!("soak: {} minutes, seed {seed}", args.minutes));
    match soak(&args, seed).await {
        Ok(code) => code,
        Err(failure) => {
            say(&format!("soak: {failure}"));
            tell_seed(&args, seed);
            ExitCode::FAILURE
        }
    }
}

async fn soak(args: &Args, seed: u64) -> Result<ExitCode, Failure> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let scene = Scene::set(&args.mailrl, seed).await?;
    let ended = tokio::select! {
        ended = run::run(&scene, args.minutes, seed) => ended,
        _ = interrupted.recv() => return Ok(ExitCode::from(130)),
        _ = terminated.recv() => return Ok(ExitCode::from(130)),
    };
    let failure = match ended {
        Ok(books) => {
            say(&run::summary(&scene, &books));
            let imbalances = books::check(&books);
            if imbalances.is_empty() {
                say("The books balance.");
                return Ok(ExitCode::SUCCESS);
            }
            for imbalance in imbalances {
                say(&format!("NOT BALANCED: {imbalance}"));
            }
            "the books do not balance".into()
        }
        Err(failure) => failure,
    };
    say(&format!("The logs are in {}.", scene.keep().await?.display()));
    Err(failure)
}

fn tell_seed(args: &Args, seed: u64) {
    say(&format!(
        "To run it again: make soak MINUTES={} SEED={seed}",
        args.minutes
    ));
}

/// A run that nobody watches goes on.
fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}
