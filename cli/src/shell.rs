//! `mailrl completions` and `mailrl man`: what a package puts beside the command.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::generate;

use crate::args::{Args, Completions, Man};
use crate::exit::Exit;
use crate::terminal::Terminal;

/// Prints the completions.
pub fn completions(args: &Completions) -> Exit {
    let mut script = Vec::new();
    generate(args.shell, &mut Args::command(), "mailrl", &mut script);
    // A pipe that was closed has had enough.
    let _ = io::stdout().lock().write_all(&script);
    Exit::Done
}

/// Writes the pages.
pub fn man(args: &Man, terminal: &Terminal) -> Exit {
    let written = std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), &args.folder));
    if let Err(error) = written {
        terminal.err(&format!("{}: {error}", args.folder.display()));
        return Exit::Failed;
    }
    terminal.err(&format!("{}: written", args.folder.display()));
    Exit::Done
}
