//! One call of a command: its arguments, the clock, the reply, the log.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_int, c_long, c_longlong};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::ptr::null_mut;

use redis_module::raw;

use super::api::Api;
use super::{ERR, OK};

/// What a handler ends with: it has replied, or the text of an error reply.
pub type Outcome = Result<(), String>;

/// The server, during one call. It cannot outlive it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub(super) api: &'static Api,
    pub(super) raw: *mut raw::RedisModuleCtx,
    call: PhantomData<&'a ()>,
}

/// The arguments of one call, the command's name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    api: &'static Api,
    raw: &'a [*mut raw::RedisModuleString],
}

/// A key's name among the arguments.
#[derive(Clone, Copy)]
pub struct KeyName<'a> {
    pub(super) raw: *mut raw::RedisModuleString,
    call: PhantomData<&'a ()>,
}

/// The load of the module.
pub type Loading<'a> = (Context<'a>, Args<'a>);

impl<'a> Args<'a> {
    /// How many there are, the command's name among them.
    pub fn len(self) -> usize {
        self.raw.len()
    }

    /// The bytes of one.
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        let string = *self.raw.get(index)?;
        let mut len = 0;
        // SAFETY: the server keeps the strings of a call alive and unchanged until it ends, and 'a
        // does not outlive the call; any length, NUL bytes too, is given with the pointer.
        unsafe {
            let bytes = (self.api.string_ptr_len)(string, &raw mut len);
            (!bytes.is_null()).then(|| std::slice::from_raw_parts(bytes.cast(), len))
        }
    }

    /// The bytes of those from `first` on.
    pub fn from(self, first: usize) -> impl Iterator<Item = &'a [u8]> {
        (first..self.len()).map_while(move |index| self.get(index))
    }

    /// One as the name of a key.
    pub fn key(self, index: usize) -> Option<KeyName<'a>> {
        self.raw.get(index).map(|&raw| KeyName {
            raw,
            call: PhantomData,
        })
    }
}

impl Context<'_> {
    /// The server's clock, in ms since 1970. Read it once a call: it runs on while expiry stands
    /// still inside a script.
    pub fn now_ms(self) -> u64 {
        // SAFETY: takes nothing and reads the clock.
        let now = unsafe { (self.api.milliseconds)() };
        u64::try_from(now).unwrap_or_default()
    }

    /// Tells the server that a key that was opened for writing has changed only if
    /// [`Key::publish`](super::Key::publish) says so: a denied call must not disturb those who watch it.
    pub fn signal_changes_by_hand(self) {
        let options = raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED.cast_signed();
        // SAFETY: the context is that of the load.
        unsafe { (self.api.set_module_options)(self.raw, options) };
    }

    /// Begins a reply of `len` values.
    pub fn reply_array(self, len: usize) {
        // SAFETY: the context is that of a running call.
        unsafe { (self.api.reply_with_array)(self.raw, to_long(len)) };
    }

    /// Begins a reply of `len` pairs.
    pub fn reply_map(self, len: usize) {
        // SAFETY: as above.
        unsafe { (self.api.reply_with_map)(self.raw, to_long(len)) };
    }

    /// Replies an integer.
    pub fn reply_integer(self, value: u64) {
        let value = c_longlong::try_from(value).unwrap_or(c_longlong::MAX);
        // SAFETY: as above.
        unsafe { (self.api.reply_with_integer)(self.raw, value) };
    }

    /// Replies a string.
    pub fn reply_bulk(self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        // SAFETY: as above; the server copies the bytes.
        unsafe { (self.api.reply_with_bulk)(self.raw, text.as_ptr().cast(), text.len()) };
    }

    /// Replies an empty string.
    pub fn reply_empty(self) {
        // SAFETY: as above.
        unsafe { (self.api.reply_with_empty)(self.raw) };
    }

    /// Replies nil.
    pub fn reply_null(self) {
        // SAFETY: as above.
        unsafe { (self.api.reply_with_null)(self.raw) };
    }

    /// Replies an error.
    pub fn reply_error(self, message: &str) {
        let message = to_c(message);
        // SAFETY: as above; the server copies the text.
        unsafe { (self.api.reply_with_error)(self.raw, message.as_ptr()) };
    }

    /// Writes a line into the server's log.
    pub fn log_warning(self, message: &str) {
        log_warning(self.api, self.raw, message);
    }
}

fn log_warning(api: &Api, context: *mut raw::RedisModuleCtx, message: &str) {
    let message = to_c(message);
    // SAFETY: the context is that of a running call, or null, which is allowed. The format is
    // constant and takes one string, so nothing in the message is a format of its own.
    unsafe { (api.log)(context, c"warning".as_ptr(), c"%s".as_ptr(), message.as_ptr()) };
}

/// Has a panic's place and reason written into the server's log: its standard error goes nowhere
/// on most machines.
fn log_panics(api: &'static Api) {
    set_hook(Box::new(move |panic| {
        let message = panic.to_string().replace('\n', " ");
        log_warning(api, null_mut(), &format!("mailrl {message}"));
    }));
}

/// Runs a command's handler for a call from the server. A panic becomes an error reply: unwinding
/// into the server would end it.
pub fn run_command(
    raw_context: *mut raw::RedisModuleCtx,
    strings: *mut *mut raw::RedisModuleString,
    count: c_int,
    handler: impl Fn(Context<'_>, Args<'_>) -> Outcome,
    on_error: impl Fn(),
) -> c_int {
    let Some(api) = Api::get() else {
        return ERR;
    };
    let context = Context {
        api,
        raw: raw_context,
        call: PhantomData,
    };
    let args = Args {
        api,
        raw: arguments(strings, count),
    };
    let message = match catch_unwind(AssertUnwindSafe(|| handler(context, args))) {
        Ok(Ok(())) => return OK,
        Ok(Err(message)) => message,
        Err(_) => {
            let message = "ERR mailrl met a fault of its own; nothing was sent or reserved for this call. Please report it with the server's log";
            context.log_warning(message);
            message.to_owned()
        }
    };
    on_error();
    context.reply_error(&message);
    OK
}

/// Runs the load of the module: takes the server's functions, then calls `load`. What `load` cannot
/// do is logged, and the module is refused.
pub fn run_load(
    raw_context: *mut raw::RedisModuleCtx,
    strings: *mut *mut raw::RedisModuleString,
    count: c_int,
    name: &CStr,
    version: c_int,
    load: impl FnOnce(Loading<'_>) -> Result<(), String>,
) -> c_int {
    // SAFETY: the context and the name are valid during the call. The allocator works from here on.
    let initialised = unsafe {
        raw::Export_RedisModule_Init(
            raw_context,
            name.as_ptr(),
            version,
            raw::REDISMODULE_APIVER_1.cast_signed(),
        )
    };
    if initialised != OK {
        return ERR;
    }
    let loaded = catch_unwind(AssertUnwindSafe(|| {
        let api = Api::load().map_err(|name| {
            (
                None,
                format!("this server has no {name}: Redis 7.0 or later is needed"),
            )
        })?;
        log_panics(api);
        let context = Context {
            api,
            raw: raw_context,
            call: PhantomData,
        };
        let args = Args {
            api,
            raw: arguments(strings, count),
        };
        load((context, args)).map_err(|message| (Some(context), message))
    }));
    match loaded {
        Ok(Ok(())) => OK,
        Ok(Err((context, message))) => {
            match context {
                Some(context) => context.log_warning(&format!("mailrl was not loaded: {message}")),
                None => eprintln!("mailrl was not loaded: {message}"),
            }
            ERR
        }
        Err(_) => ERR,
    }
}

/// A text for the server's C functions; what comes after a NUL byte would be lost, so none is left.
pub(super) fn to_c(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

fn arguments<'a>(
    strings: *mut *mut raw::RedisModuleString,
    count: c_int,
) -> &'a [*mut raw::RedisModuleString] {
    match usize::try_from(count) {
        Ok(len) if !strings.is_null() => {
            // SAFETY: the server gives `count` strings at `strings`, valid during the call; the callers
            // here let them live no longer.
            unsafe { std::slice::from_raw_parts(strings, len) }
        }
        _ => &[],
    }
}

fn to_long(len: usize) -> c_long {
    c_long::try_from(len).unwrap_or(c_long::MAX)
}
