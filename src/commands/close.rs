//! `MAILRL.RELEASE key reservation` and `MAILRL.COMMIT key reservation`

use mailrl_core::expiry::Expiry;
use mailrl_core::{BadState, Changes, ReservationId, WindowKind, arguments};

use super::arguments::{key_name, refusal};
use super::{UPDATES_KEY, entry_point};
use crate::counters::{self, Counter};
use crate::redis::command::ArgumentKind;
use crate::redis::context::Outcome;
use crate::redis::{Args, Argument, CommandSpec, Context, Key, KeyError};
use crate::settings;

pub static RELEASE: CommandSpec = CommandSpec {
    name: c"mailrl.release",
    summary: c"Takes a reservation back, as if it had not been made",
    handler: entry_point!(release),
    ..CLOSES
};

pub static COMMIT: CommandSpec = CommandSpec {
    name: c"mailrl.commit",
    summary: c"Keeps a reservation: the mail is out",
    handler: entry_point!(commit),
    ..CLOSES
};

/// How a reservation ends: [`mailrl_core::release`] or [`mailrl_core::commit`].
type Decide<V> = fn(&mut V, WindowKind, ReservationId, u64) -> Result<Option<Changes>, BadState>;

/// What both have in common. Neither is `deny-oom`: they must work when memory is out.
const CLOSES: CommandSpec = CommandSpec {
    name: c"",
    summary: c"",
    complexity: c"O(log R) with R open reservations, at most 1,024",
    arity: 3,
    flags: c"write fast",
    acl: c"write fast",
    key: UPDATES_KEY,
    arguments: &[Argument {
        name: c"reservation",
        token: None,
        kind: ArgumentKind::Text,
    }],
    handler: entry_point!(release),
};

fn release(context: Context<'_>, args: Args<'_>) -> Outcome {
    close(
        context,
        args,
        "MAILRL.RELEASE key reservation",
        mailrl_core::release,
        &counters::RELEASED,
    )
}

fn commit(context: Context<'_>, args: Args<'_>) -> Outcome {
    close(
        context,
        args,
        "MAILRL.COMMIT key reservation",
        mailrl_core::commit,
        &counters::COMMITTED,
    )
}

fn close<'a>(
    context: Context<'a>,
    args: Args<'a>,
    usage: &str,
    decide: Decide<Key<'a>>,
    counter: &Counter,
) -> Outcome {
    let name = key_name(args, 3..=3, usage)?;
    let id = arguments::reservation(args.get(2).unwrap_or_default()).map_err(refusal)?;
    let mut key = Key::open(context, name)?;
    let closed = decide(&mut key, settings::current().kind, id, context.now_ms()).map_err(KeyError::from)?;
    if let Some(changes) = &closed {
        counter.increment();
        key.publish(changes, Expiry::Stays);
    }
    context.reply_integer(closed.is_some().into());
    Ok(())
}
