//! `libmailrl.so`, a Redis module: one atomic check-and-reserve of a mailbox's minute and day.
//!
//! | command | does |
//! | --- | --- |
//! | `MAILRL.RESERVE` | counts one message and its recipients, if there is room for both |
//! | `MAILRL.RELEASE` | takes a reservation back: the send failed |
//! | `MAILRL.COMMIT` | keeps it: the mail is out |
//! | `MAILRL.PAUSE` | denies every message of a mailbox for a while |
//! | `MAILRL.LIMITS` | overrides a mailbox's limits |
//! | `MAILRL.STATUS` | shows how a mailbox stands |
//!
//! What is decided stands in `mailrl-core`; here is how it is called, stored and replicated.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod commands;
mod counters;
mod redis;
mod settings;

use std::os::raw::c_int;

use redis_module::raw;

use crate::redis::{CommandSpec, Loading, info};

/// The module's memory is the server's, counted in its `used_memory`.
#[global_allocator]
static ALLOCATOR: redis_module::alloc::RedisAlloc = redis_module::alloc::RedisAlloc;

/// The number that `MODULE LIST` shows: major, minor and patch in two digits each.
const MODULE_VERSION: c_int = 100;

static COMMANDS: &[&CommandSpec] = &[
    &commands::RESERVE,
    &commands::RELEASE,
    &commands::COMMIT,
    &commands::PAUSE,
    &commands::LIMITS,
    &commands::STATUS,
    #[cfg(debug_assertions)]
    &commands::PANIC,
];

fn load(loading: Loading<'_>) -> Result<(), String> {
    let (context, _) = loading;
    context.signal_changes_by_hand();
    for command in COMMANDS {
        command.register(context)?;
    }
    info::register(context, counters::write_info)?;
    settings::register(loading)
}

/// Called by the server when it loads the module.
#[unsafe(no_mangle)]
pub extern "C" fn RedisModule_OnLoad(
    context: *mut raw::RedisModuleCtx,
    strings: *mut *mut raw::RedisModuleString,
    count: c_int,
) -> c_int {
    redis::context::run_load(context, strings, count, c"mailrl", MODULE_VERSION, load)
}
