//! What the module uses of Redis, behind safe types. All `unsafe` of the module stands here.
//!
//! | file | subject |
//! | --- | --- |
//! | [`api`] | the server's functions, taken once at load |
//! | [`context`] | a command's arguments, clock, replies and log |
//! | [`key`] | one key's string, its expiry, and what of it is replicated |
//! | [`offset`] | where a replicated range begins, as the server's strings |
//! | [`command`] | registering commands, with their documentation |
//! | [`config`] | registering configuration |
//! | [`info`] | fields of `INFO` |

pub mod api;
pub mod command;
pub mod config;
pub mod context;
pub mod info;
pub mod key;
mod offset;

use std::os::raw::c_int;

use redis_module::raw;

pub use command::{Argument, CommandSpec};
pub use context::{Args, Context, KeyName, Loading};
pub use key::{Key, KeyError};

/// What the server's functions answer when all went well.
#[expect(clippy::cast_possible_truncation, reason = "it is zero")]
const OK: c_int = raw::REDISMODULE_OK as c_int;
/// What they answer otherwise.
#[expect(clippy::cast_possible_truncation, reason = "it is one")]
const ERR: c_int = raw::REDISMODULE_ERR as c_int;
