//! `MAILRL.STATUS key`

use mailrl_core::{Status, WindowStatus};

use super::arguments::key_name;
use super::{READS_KEY, entry_point, reply_overrides};
use crate::redis::context::Outcome;
use crate::redis::{Args, CommandSpec, Context, Key, KeyError};
use crate::settings;

const USAGE: &str = "MAILRL.STATUS key";

pub static STATUS: CommandSpec = CommandSpec {
    name: c"mailrl.status",
    summary: c"Shows what a mailbox has used, what it may use, and when room comes",
    complexity: c"O(N) with N bytes of the mailbox's value",
    arity: 2,
    flags: c"readonly fast",
    acl: c"read fast",
    key: READS_KEY,
    arguments: &[],
    handler: entry_point!(status),
};

fn status(context: Context<'_>, args: Args<'_>) -> Outcome {
    let name = key_name(args, 2..=2, USAGE)?;
    let key = Key::open_to_read(context, name)?;
    let config = settings::current();
    let status = mailrl_core::status(key.contents(), &config, context.now_ms()).map_err(KeyError::from)?;
    reply(context, &status);
    Ok(())
}

fn reply(context: Context<'_>, status: &Status) {
    context.reply_map(6);
    context.reply_bulk("window");
    context.reply_bulk(status.kind.name());
    context.reply_bulk("minute");
    reply_window(context, status.minute);
    context.reply_bulk("day");
    reply_window(context, status.day);
    context.reply_bulk("open");
    context.reply_integer(u64::try_from(status.open).unwrap_or(u64::MAX));
    context.reply_bulk("paused_for_ms");
    context.reply_integer(status.paused_for_ms);
    context.reply_bulk("overrides");
    reply_overrides(context, status.overrides);
}

fn reply_window(context: Context<'_>, window: WindowStatus) {
    context.reply_map(3);
    context.reply_bulk("used");
    context.reply_integer(window.used.into());
    context.reply_bulk("limit");
    context.reply_integer(window.limit.into());
    context.reply_bulk("room_in_ms");
    context.reply_integer(window.room_in_ms);
}
