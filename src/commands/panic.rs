//! `MAILRL.PANIC key`, in debug builds only: for the test that a panic does not end the server.

use super::{READS_KEY, entry_point};
use crate::redis::context::Outcome;
use crate::redis::{Args, CommandSpec, Context};

pub static PANIC: CommandSpec = CommandSpec {
    name: c"mailrl.panic",
    summary: c"Panics, as a fault of the module would",
    complexity: c"O(1)",
    arity: 2,
    flags: c"readonly fast",
    acl: c"read fast",
    key: READS_KEY,
    arguments: &[],
    handler: entry_point!(panic),
};

#[expect(clippy::panic, reason = "that is what it is for")]
fn panic(_context: Context<'_>, args: Args<'_>) -> Outcome {
    panic!("asked to, for {}", args.get(1).unwrap_or_default().escape_ascii());
}
