//! `MAILRL.LIMITS key [PERMINUTE n] [PERDAY n] [CONCURRENT n] | RESET`

use mailrl_core::arguments::LIMITS_FORM;
use mailrl_core::{arguments, expiry, override_limits};

use super::arguments::{key_name, refusal};
use super::documented::{CONCURRENT, PERDAY, PERMINUTE};
use super::{UPDATES_KEY, entry_point, reply_overrides};
use crate::redis::command::ArgumentKind;
use crate::redis::context::Outcome;
use crate::redis::{Args, Argument, CommandSpec, Context, Key, KeyError};
use crate::settings;

pub static LIMITS: CommandSpec = CommandSpec {
    name: c"mailrl.limits",
    summary:
        c"Overrides the limits of one mailbox, for all callers and at once; without limits it shows them",
    complexity: c"O(1)",
    arity: -2,
    flags: c"write fast",
    acl: c"write fast",
    key: UPDATES_KEY,
    arguments: &[
        PERMINUTE,
        PERDAY,
        CONCURRENT,
        Argument {
            name: c"reset",
            token: Some(c"RESET"),
            kind: ArgumentKind::Token,
        },
    ],
    handler: entry_point!(limits),
};

fn limits(context: Context<'_>, args: Args<'_>) -> Outcome {
    let name = key_name(args, 2..=usize::MAX, LIMITS_FORM)?;
    let wanted = arguments::limits(args.from(2)).map_err(refusal)?;
    let mut key = Key::open(context, name)?;
    let now_ms = context.now_ms();
    let config = settings::current();
    let overridden = override_limits(&mut key, config.kind, wanted, now_ms).map_err(KeyError::from)?;
    if let Some(changes) = &overridden.changes {
        key.publish(
            changes,
            expiry::due(overridden.lifetime, key.expires_at(), now_ms),
        );
    }
    context.reply_map(2);
    context.reply_bulk("overrides");
    reply_overrides(context, overridden.limits);
    context.reply_bulk("defaults");
    context.reply_map(2);
    context.reply_bulk("per_minute");
    context.reply_integer(config.per_minute.into());
    context.reply_bulk("recipients_per_day");
    context.reply_integer(config.per_day.into());
    Ok(())
}
