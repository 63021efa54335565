//! The exit codes, in one place.

use std::process::ExitCode;

use crate::interruption::Signal;

/// What the help says of them.
pub const HELP: &str = "\
Exit codes:
    0  all mails were sent (other commands: all was done)
    1  a mail failed (other commands: something could not be done)
    2  wrong usage or configuration, nothing was done
    3  a mail was deferred, none failed
    4  a mail may have been sent, look before you send it again; goes before 1, 3
  130  Ctrl-C (143: SIGTERM) ended it before all was done; goes before the others";

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is done.
    Done,
    /// Something failed.
    Failed,
    /// Nothing was done: the command line or the configuration is wrong.
    Usage,
    /// Something has to wait, nothing failed.
    Deferred,
    /// Of some mail nobody knows whether it was sent.
    Unknown,
    /// Ended before all was done.
    Interrupted(Signal),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Deferred => 3,
            Exit::Unknown => 4,
            Exit::Interrupted(Signal::Interrupt) => 130,
            Exit::Interrupted(Signal::Terminate) => 143,
        })
    }
}
