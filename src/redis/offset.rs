//! Offsets as the server's strings.
//!
//! Nearly every call replicates a range at one of a few offsets. A number costs the server two
//! allocations each time, a string that is there already costs it a reference: so each is made when
//! it is first replicated, and kept.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;

use super::api::Api;

/// The offsets below this one are kept: all but those of older reservations.
const KEPT: usize = 2_048;

static TEXTS: [AtomicPtr<raw::RedisModuleString>; KEPT] = [const { AtomicPtr::new(null_mut()) }; KEPT];

/// The text of an offset, if it is one of those that are kept.
pub fn text(api: &Api, offset: usize) -> Option<*mut raw::RedisModuleString> {
    let place = TEXTS.get(offset)?;
    let known = place.load(Ordering::Relaxed);
    if !known.is_null() {
        return Some(known);
    }
    let digits = offset.to_string();
    // SAFETY: without a context the string lives until it is freed, which it never is. The server
    // copies the digits.
    let made = unsafe { (api.create_string)(null_mut(), digits.as_ptr().cast(), digits.len()) };
    // Commands run one at a time: nobody has made it meanwhile.
    place.store(made, Ordering::Relaxed);
    Some(made)
}
