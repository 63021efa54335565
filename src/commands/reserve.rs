//! `MAILRL.RESERVE key recipients [PERMINUTE n] [PERDAY n] [CONCURRENT n] [LEASE ms] [BULK]`

use std::ops::RangeInclusive;

use mailrl_core::{Answer, IdText, Lane, Request, Verdict, Wish, expiry};

use super::arguments::{LIMIT, key_name, number};
use super::options::{CONCURRENT, Options, PERDAY, PERMINUTE, once};
use super::{UPDATES_KEY, entry_point};
use crate::redis::command::ArgumentKind;
use crate::redis::context::Outcome;
use crate::redis::{Args, Argument, CommandSpec, Context, Key, KeyError};
use crate::{counters, settings};

const USAGE: &str = "MAILRL.RESERVE key recipients [PERMINUTE n] [PERDAY n] [CONCURRENT n] [LEASE ms] [BULK]";
const LEASE_MS: RangeInclusive<u32> = 1..=3_600_000;
const DEFAULT_LEASE_MS: u32 = 120_000;

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
    let name = key_name(args, 3..=usize::MAX, USAGE)?;
    let request = parse(args)?;
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

fn parse(args: Args<'_>) -> Result<Request, String> {
    let recipients = number("recipients", args.get(2).unwrap_or_default(), &LIMIT)?;
    let mut wish = Wish::default();
    let mut lease_ms = None;
    let mut bulk = None;
    let mut options = Options::new(args, 3, USAGE);
    while let Some(option) = options.next_name() {
        if options.limit(option, &mut wish)? {
            continue;
        }
        match option {
            _ if option.eq_ignore_ascii_case(b"LEASE") => options.value("LEASE", &LEASE_MS, &mut lease_ms)?,
            _ if option.eq_ignore_ascii_case(b"BULK") => once("BULK", &mut bulk, Lane::Bulk)?,
            _ => return Err(options.unknown(option)),
        }
    }
    Ok(Request {
        recipients,
        wish,
        lane: bulk.unwrap_or_default(),
        lease_ms: lease_ms.unwrap_or(DEFAULT_LEASE_MS),
    })
}
