//! `MAILRL.RESERVE key recipients [PERMINUTE n] [PERDAY n] [CONCURRENT n] [LEASE ms] [BULK]`

use mailrl_core::arguments::RESERVE_FORM;
use mailrl_core::{Answer, IdText, Lane, Verdict, arguments, expiry};

use super::arguments::{key_name, refusal};
use super::documented::{CONCURRENT, PERDAY, PERMINUTE};
use super::{UPDATES_KEY, entry_point};
use crate::redis::command::ArgumentKind;
use crate::redis::context::Outcome;
use crate::redis::{Args, Argument, CommandSpec, Context, Key, KeyError};
use crate::{counters, settings};

pub static RESERVE: CommandSpec = CommandSpec {
    name: c"mailrl.reserve",
    summary: c"Counts one message and its recipients, if the mailbox's minute and day have room for both",
    complexity: c"O(1); a denied call O(S) with S slots of a window, at most 289",
    arity: -3,
    flags: c"write deny-oom fast",
    acl: c"write fast",
    key: UPDATES_KEY,
    arguments: &[
        Argument {
            name: c"recipients",
            token: None,
            kind: ArgumentKind::Integer,
        },
        PERMINUTE,
        PERDAY,
        CONCURRENT,
        Argument {
            name: c"milliseconds",
            token: Some(c"LEASE"),
            kind: ArgumentKind::Integer,
        },
        Argument {
            name: c"bulk",
            token: Some(c"BULK"),
            kind: ArgumentKind::Token,
        },
    ],
    handler: entry_point!(reserve),
};

fn reserve(context: Context<'_>, args: Args<'_>) -> Outcome {
    let name = key_name(args, 3..=usize::MAX, RESERVE_FORM)?;
    let request = arguments::reserve(args.from(2)).map_err(refusal)?;
    let mut key = Key::open(context, name)?;
    let now_ms = context.now_ms();
    let answer =
        mailrl_core::reserve(&mut key, &settings::current(), &request, now_ms).map_err(KeyError::from)?;
    match answer.verdict {
        Verdict::TooLarge { per_day } => {
            counters::TOO_LARGE.increment();
            return Err(format!(
                "TOOLARGE {} recipients never fit a {} of {per_day}; split the message, or raise the limit",
                request.recipients,
                if request.lane == Lane::Bulk {
                    "day's bulk share"
                } else {
                    "day"
                },
            ));
        }
        Verdict::Denied { reason, .. } => counters::denied(reason).increment(),
        Verdict::Allowed(_) => {
            counters::ALLOWED.increment();
            let expiry = expiry::due(answer.lifetime, key.expires_at(), now_ms);
            key.publish(&answer.changes, expiry);
        }
    }
    reply(context, &answer);
    Ok(())
}

fn reply(context: Context<'_>, answer: &Answer) {
    let (allowed, reason, retry_after_ms) = match answer.verdict {
        Verdict::Denied {
            reason,
            retry_after_ms,
        } => (0, reason.name(), retry_after_ms),
        _ => (1, "ok", 0),
    };
    context.reply_array(6);
    context.reply_integer(allowed);
    context.reply_bulk(reason);
    context.reply_integer(retry_after_ms);
    context.reply_integer(answer.minute_left.into());
    context.reply_integer(answer.day_left.into());
    match answer.verdict {
        Verdict::Allowed(id) => context.reply_bulk(id.write(&mut IdText::default())),
        _ => context.reply_empty(),
    }
}
