//! `MAILRL.PAUSE key ms`

use mailrl_core::{arguments, expiry};

use super::arguments::{key_name, refusal};
use super::{UPDATES_KEY, entry_point};
use crate::redis::command::ArgumentKind;
use crate::redis::context::Outcome;
use crate::redis::{Args, Argument, CommandSpec, Context, Key, KeyError};
use crate::{counters, settings};

const USAGE: &str = "MAILRL.PAUSE key ms";

pub static PAUSE: CommandSpec = CommandSpec {
    name: c"mailrl.pause",
    summary: c"Denies every message of the mailbox for so long; the longer pause wins, 0 ends it",
    complexity: c"O(1)",
    arity: 3,
    flags: c"write fast",
    acl: c"write fast",
    key: UPDATES_KEY,
    arguments: &[Argument {
        name: c"milliseconds",
        token: None,
        kind: ArgumentKind::Integer,
    }],
    handler: entry_point!(pause),
};

fn pause(context: Context<'_>, args: Args<'_>) -> Outcome {
    let name = key_name(args, 3..=3, USAGE)?;
    let pause_ms = arguments::pause_ms(args.get(2).unwrap_or_default()).map_err(refusal)?;
    let mut key = Key::open(context, name)?;
    let now_ms = context.now_ms();
    let paused =
        mailrl_core::pause(&mut key, settings::current().kind, pause_ms, now_ms).map_err(KeyError::from)?;
    if let Some(changes) = &paused.changes {
        counters::PAUSED.increment();
        key.publish(changes, expiry::due(paused.lifetime, key.expires_at(), now_ms));
    }
    context.reply_integer(paused.until);
    Ok(())
}
