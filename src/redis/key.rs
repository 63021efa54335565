//! One key: its string in place, its expiry, and what of it reaches replicas and the append-only
//! file.

use std::os::raw::{c_int, c_longlong};

use mailrl_core::expiry::Expiry;
use mailrl_core::{BadState, Changes, Value};
use redis_module::raw;

use super::api::Api;
use super::context::{Context, KeyName};
use super::offset;

/// Why a key's value cannot be used.
pub enum KeyError {
    /// It is no string.
    WrongType,
    /// It is a string, but not one of ours.
    BadState(BadState),
}

impl From<BadState> for KeyError {
    fn from(error: BadState) -> Self {
        Self::BadState(error)
    }
}

/// An open key that holds a string or nothing.
pub struct Key<'a> {
    context: Context<'a>,
    name: KeyName<'a>,
    raw: *mut raw::RedisModuleKey,
    mode: c_int,
    // Where the string's bytes are, and how many: valid until its length changes.
    bytes: *mut u8,
    len: usize,
}

impl<'a> Key<'a> {
    /// Opens a key to read and write it.
    pub fn open(context: Context<'a>, name: KeyName<'a>) -> Result<Self, KeyError> {
        Self::open_as(context, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    /// Opens a key to read it.
    pub fn open_to_read(context: Context<'a>, name: KeyName<'a>) -> Result<Self, KeyError> {
        Self::open_as(context, name, raw::REDISMODULE_READ)
    }

    fn open_as(context: Context<'a>, name: KeyName<'a>, mode: u32) -> Result<Self, KeyError> {
        let mode = mode.cast_signed();
        // SAFETY: context and name are those of a running call. A null key (nothing to read) is
        // taken by all functions used here as an empty one.
        let raw = unsafe { (context.api.open_key)(context.raw, name.raw, mode) };
        let mut key = Self {
            context,
            name,
            raw,
            mode,
            bytes: std::ptr::null_mut(),
            len: 0,
        };
        // SAFETY: as above. The raw number is compared: the crate's own enumeration does not know
        // the types of later servers.
        let kind = unsafe { (key.api().key_type)(raw) } as isize;
        if kind == raw::REDISMODULE_KEYTYPE_EMPTY {
            return Ok(key);
        }
        if kind != raw::REDISMODULE_KEYTYPE_STRING {
            return Err(KeyError::WrongType);
        }
        // SAFETY: as above.
        let len = unsafe { (key.api().value_length)(raw) };
        if len < mailrl_core::SHORTEST_VALUE {
            // Access in place would change how the server encodes somebody's short string.
            return Err(BadState::Length.into());
        }
        key.locate();
        Ok(key)
    }

    /// Its string; empty if there is none.
    pub fn contents(&self) -> &[u8] {
        if self.bytes.is_null() {
            return &[];
        }
        // SAFETY: `locate` found this many bytes here, and nothing touches them while they are borrowed.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }

    /// When it expires, in ms since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        // SAFETY: the key is open.
        let at = unsafe { (self.api().get_abs_expire)(self.raw) };
        u64::try_from(at).ok()
    }

    /// Says what a call changed: to those who watch the key, to replicas and to the append-only
    /// file. What is replicated are effects with absolute times, never the command.
    pub fn publish(&mut self, changes: &Changes, expiry: Expiry) {
        // SAFETY: the key is open for writing.
        unsafe {
            match expiry {
                Expiry::Stays => {}
                Expiry::At(ms) => {
                    (self.api().set_abs_expire)(self.raw, to_signed(ms));
                }
                Expiry::Removed => {
                    (self.api().set_abs_expire)(self.raw, raw::REDISMODULE_NO_EXPIRE.into());
                }
            }
        }
        match changes {
            Changes::Whole => self.replicate_whole(),
            Changes::Ranges(ranges) => {
                for range in ranges.iter() {
                    self.replicate_range(range.start, range.end);
                }
                self.replicate_expiry(expiry);
            }
        }
        // SAFETY: context and name are those of a running call.
        unsafe { (self.api().signal_modified_key)(self.context.raw, self.name.raw) };
    }

    fn replicate_whole(&self) {
        let (bytes, len) = (self.bytes.cast_const(), self.len);
        // SAFETY: each format names the arguments that follow: the key's string (s), bytes with
        // their length (b), a C string (c), a long long (l). The server copies them.
        unsafe {
            match self.expires_at() {
                Some(at) => (self.api().replicate)(
                    self.context.raw,
                    c"SET".as_ptr(),
                    c"sbcl".as_ptr(),
                    self.name.raw,
                    bytes,
                    len,
                    c"PXAT".as_ptr(),
                    to_signed(at),
                ),
                None => (self.api().replicate)(
                    self.context.raw,
                    c"SET".as_ptr(),
                    c"sb".as_ptr(),
                    self.name.raw,
                    bytes,
                    len,
                ),
            };
        }
    }

    fn replicate_range(&self, start: usize, end: usize) {
        let end = end.min(self.len);
        let len = end.saturating_sub(start);
        if len == 0 {
            return;
        }
        let (context, command, name) = (self.context.raw, c"SETRANGE".as_ptr(), self.name.raw);
        // SAFETY: start + len is at most the string's length; formats as above. An offset's text is
        // a string of the server's that lives on.
        unsafe {
            let bytes = self.bytes.add(start).cast_const();
            if let Some(offset) = offset::text(self.api(), start) {
                (self.api().replicate)(context, command, c"ssb".as_ptr(), name, offset, bytes, len);
            } else {
                let offset = c_longlong::try_from(start).unwrap_or(c_longlong::MAX);
                (self.api().replicate)(context, command, c"slb".as_ptr(), name, offset, bytes, len);
            }
        }
    }

    fn replicate_expiry(&self, expiry: Expiry) {
        let (context, name) = (self.context.raw, self.name.raw);
        // SAFETY: formats as above.
        unsafe {
            match expiry {
                Expiry::Stays => {}
                Expiry::At(ms) => {
                    let (command, format) = (c"PEXPIREAT".as_ptr(), c"sl".as_ptr());
                    (self.api().replicate)(context, command, format, name, to_signed(ms));
                }
                Expiry::Removed => {
                    (self.api().replicate)(context, c"PERSIST".as_ptr(), c"s".as_ptr(), name);
                }
            }
        }
    }

    /// Finds the string's bytes, after opening it and whenever its length has changed.
    fn locate(&mut self) {
        let mut len = 0;
        // SAFETY: the key is open in this mode and holds a string; the length belongs to the pointer.
        let bytes = unsafe { (self.api().string_dma)(self.raw, &raw mut len, self.mode) };
        self.bytes = bytes.cast();
        self.len = if bytes.is_null() { 0 } else { len };
    }

    const fn api(&self) -> &'static Api {
        self.context.api
    }
}

impl Value for Key<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        if self.bytes.is_null() {
            return &mut [];
        }
        // SAFETY: `locate` found this many bytes here, nothing else touches the string while the
        // command runs, and they are borrowed as long as the key is.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, self.len) }
    }

    fn resize(&mut self, len: usize) {
        // SAFETY: the key is open for writing and holds a string or nothing. Keeps the expiry.
        unsafe { (self.api().string_truncate)(self.raw, len) };
        self.locate();
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: opened once and closed once; null is allowed.
        unsafe { (self.api().close_key)(self.raw) };
    }
}

fn to_signed(ms: u64) -> c_longlong {
    c_longlong::try_from(ms).unwrap_or(c_longlong::MAX)
}
