//! The command `mailrl`: mail through the brake, and a look at it.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | what can be said on the command line, and the help |
//! | `config` | what holds after flags, environment and file |
//! | `exit` | the exit codes |
//! | `log`, `terminal`, `words` | where lines go, and how they are worded |
//! | `interruption` | Ctrl-C and SIGTERM |
//! | `mail_file` | a mail out of a file |
//! | `server` | the Redis that is asked by hand, and what to do when it does not answer |
//! | `overview` | all mailboxes at once, as data |
//! | `send`, `enqueue`, `queue`, `worker`, `status`, `limits`, `pause`, `watch`, `simulate` | the subcommands |
//! | `shell` | the subcommands that help a shell: completions and manual pages |

mod args;
mod config;
mod enqueue;
mod exit;
mod interruption;
mod limits;
mod log;
mod mail_file;
mod overview;
mod pause;
mod queue;
mod send;
mod server;
mod shell;
mod simulate;
mod status;
mod terminal;
mod watch;
mod words;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

use crate::args::{Args, Command, Online};
use crate::config::Config;
use crate::exit::Exit;
use crate::log::RedisTrouble;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    let args = Args::parse();
    let terminal = Terminal::new();
    let exit = start(args, &terminal).unwrap_or_else(|error| {
        terminal.err(&format!("mailrl: {error}"));
        Exit::Usage
    });
    exit.into()
}

fn start(args: Args, terminal: &Terminal) -> Result<Exit, Box<dyn std::error::Error>> {
    let trouble = log::start(&args.log, args.command.usual_log(), terminal)?;
    let command = match args.command {
        Command::Simulate(args) => return Ok(simulate::run(&args, terminal)),
        Command::Completions(args) => return Ok(shell::completions(&args)),
        Command::Man(args) => return Ok(shell::man(&args, terminal)),
        Command::Online(command) => command,
    };
    let config = Config::load(&args.place)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(run(command, config, terminal, trouble));
    // A read from a terminal or a pipe that goes on for ever must not hold the end up.
    runtime.shutdown_background();
    Ok(exit?)
}

async fn run(
    command: Online,
    config: Config,
    terminal: &Terminal,
    trouble: RedisTrouble,
) -> Result<Exit, config::ConfigError> {
    match command {
        Online::Send(args) => send::run(args, config, terminal, trouble).await,
        Online::Enqueue(args) => enqueue::run(args, &config, terminal).await,
        Online::Queue(args) => queue::run(args, &config, terminal).await,
        Online::Worker(args) => worker::run(args, config, terminal).await,
        Online::Status(args) => status::run(&args, &config, terminal).await,
        Online::Limits(args) => limits::run(&args, &config, terminal).await,
        Online::Pause(args) => pause::pause(&args, &config, terminal).await,
        Online::Resume(args) => pause::resume(&args, &config, terminal).await,
        Online::Watch(args) => watch::run(&args, config, terminal).await,
    }
}
