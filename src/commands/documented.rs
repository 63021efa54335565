//! Options that more than one command takes, as `COMMAND DOCS` shows them.

use crate::redis::Argument;
use crate::redis::command::ArgumentKind;

/// Messages a minute.
pub const PERMINUTE: Argument = Argument {
    name: c"messages",
    token: Some(c"PERMINUTE"),
    kind: ArgumentKind::Integer,
};
/// Recipients a day.
pub const PERDAY: Argument = Argument {
    name: c"recipients",
    token: Some(c"PERDAY"),
    kind: ArgumentKind::Integer,
};
/// Open reservations at once.
pub const CONCURRENT: Argument = Argument {
    name: c"reservations",
    token: Some(c"CONCURRENT"),
    kind: ArgumentKind::Integer,
};
