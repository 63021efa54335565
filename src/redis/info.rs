//! Fields of `INFO mailrl`.

use std::ffi::CStr;
use std::os::raw::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use redis_module::raw;

use super::OK;
use super::api::Api;
use super::context::{Context, to_c};

/// An `INFO` that is being written.
pub struct Info {
    api: &'static Api,
    raw: *mut raw::RedisModuleInfoCtx,
}

impl Info {
    /// Adds a text.
    pub fn text(&self, field: &CStr, value: &str) {
        let value = to_c(value);
        // SAFETY: the context is that of a running call; the server copies the texts.
        unsafe { (self.api.info_add_text)(self.raw, field.as_ptr(), value.as_ptr()) };
    }

    /// Adds a number.
    pub fn number(&self, field: &CStr, value: u64) {
        // SAFETY: as above.
        unsafe { (self.api.info_add_number)(self.raw, field.as_ptr(), value) };
    }

    /// A field of the server's own `INFO`.
    pub fn of_server(&self, section: &CStr, field: &CStr) -> Option<String> {
        // SAFETY: a null context is allowed (nothing is freed by itself then); the field's text
        // lives until the information is freed, and is copied before.
        unsafe {
            let data = (self.api.get_server_info)(std::ptr::null_mut(), section.as_ptr());
            let value = (self.api.server_info_field)(data, field.as_ptr());
            let copy = (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned());
            (self.api.free_server_info)(std::ptr::null_mut(), data);
            copy
        }
    }
}

static WRITE: OnceLock<fn(&Info)> = OnceLock::new();

/// Has `write` called for each `INFO mailrl`.
pub fn register(context: Context<'_>, write: fn(&Info)) -> Result<(), String> {
    let write = *WRITE.get_or_init(|| write);
    let _ = write;
    // SAFETY: the context is that of the load; the function lives as long as the module.
    let status = unsafe { (context.api.register_info_func)(context.raw, Some(write_info)) };
    if status == OK {
        Ok(())
    } else {
        Err("INFO could not be registered".into())
    }
}

extern "C" fn write_info(raw: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    let (Some(api), Some(write)) = (Api::get(), WRITE.get()) else {
        return;
    };
    // SAFETY: the context is that of a running call. An empty name adds the module's own section.
    let wanted = unsafe { (api.info_add_section)(raw, c"".as_ptr()) } == OK;
    if wanted {
        // Unwinding into the server would end it; what was added so far is shown.
        let _ = catch_unwind(AssertUnwindSafe(|| write(&Info { api, raw })));
    }
}
