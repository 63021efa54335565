//! What every command does with its arguments; what they ask for is read by
//! [`mailrl_core::arguments`].

use std::ops::RangeInclusive;

use crate::redis::{Args, KeyName};

/// The key of a call, which comes first; a call with too few or too many arguments is refused.
/// `form` is the right one.
pub fn key_name<'a>(args: Args<'a>, len: RangeInclusive<usize>, form: &str) -> Result<KeyName<'a>, String> {
    let name = args.key(1).filter(|_| len.contains(&args.len()));
    name.ok_or_else(|| format!("ERR wrong number of arguments; the form is {form}"))
}

/// The error reply to arguments that ask for nothing that there is.
pub fn refusal(mut what_is_wrong: String) -> String {
    what_is_wrong.insert_str(0, "ERR ");
    what_is_wrong
}
