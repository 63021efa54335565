//! The commands: each parses, asks the core, stores and replies.

mod arguments;
mod close;
mod documented;
mod limits;
#[cfg(debug_assertions)]
mod panic;
mod pause;
mod reserve;
mod status;

pub use close::{COMMIT, RELEASE};
pub use limits::LIMITS;
#[cfg(debug_assertions)]
pub use panic::PANIC;
pub use pause::PAUSE;
pub use reserve::RESERVE;
pub use status::STATUS;

use mailrl_core::Wish;
use redis_module::raw;

use crate::redis::{Context, KeyError};

/// The key is read and written in place.
const UPDATES_KEY: u32 =
    raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE;
/// The key is only read.
const READS_KEY: u32 = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;

/// Makes the function that the server calls for a handler.
macro_rules! entry_point {
    ($handler:path) => {{
        extern "C" fn enter(
            context: *mut redis_module::raw::RedisModuleCtx,
            strings: *mut *mut redis_module::raw::RedisModuleString,
            count: std::os::raw::c_int,
        ) -> std::os::raw::c_int {
            $crate::redis::context::run_command(context, strings, count, $handler, || {
                $crate::counters::ERRORS.increment();
            })
        }
        enter
    }};
}
pub(crate) use entry_point;

impl From<KeyError> for String {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::WrongType => {
                "WRONGTYPE the key holds no string, and a mailbox's state is one; use another key".into()
            }
            KeyError::BadState(error) => format!("BADSTATE {error}"),
        }
    }
}

/// Replies the operator's limits: a map, nil where there is none.
fn reply_overrides(context: Context<'_>, limits: Wish) {
    context.reply_map(3);
    let named = [
        ("per_minute", limits.per_minute),
        ("recipients_per_day", limits.per_day),
        ("concurrent", limits.concurrent),
    ];
    for (name, limit) in named {
        context.reply_bulk(name);
        match limit {
            Some(limit) => context.reply_integer(limit.into()),
            None => context.reply_null(),
        }
    }
}
