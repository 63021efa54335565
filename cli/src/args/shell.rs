//! What helps a shell: `completions`, `man`.

use std::path::PathBuf;

use clap::Args as Group;
use clap_complete::Shell;

use super::path;

const COMPLETIONS_NOTES: &str = "\
Examples:
  mailrl completions bash > ~/.local/share/bash-completion/completions/mailrl
  mailrl completions zsh > ~/.zfunc/_mailrl
  mailrl completions fish > ~/.config/fish/completions/mailrl.fish";

const MAN_NOTES: &str = "\
Example:
  mailrl man ~/.local/share/man/man1 && man mailrl-worker";

/// Print what lets a shell complete this command's words
#[derive(Group)]
#[command(after_help = COMPLETIONS_NOTES)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Write the manual pages, one for each subcommand
#[derive(Group)]
#[command(after_help = MAN_NOTES)]
pub struct Man {
    /// The folder for them; it is made if it is not there
    #[arg(value_name = "FOLDER", value_parser = path())]
    pub folder: PathBuf,
}
