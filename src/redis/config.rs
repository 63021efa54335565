//! Configuration that the server keeps: `CONFIG GET`, `CONFIG SET`, `CONFIG REWRITE`, redis.conf.

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::raw;

use super::OK;
use super::context::Context;

/// A number, or the number of a name.
pub struct Setting {
    /// Its name after `mailrl.`.
    pub name: &'static CStr,
    /// What it may be.
    pub values: Values,
    /// What it is.
    pub value: AtomicI64,
}

/// What a setting may be.
pub enum Values {
    /// A number in this range.
    Range(i64, i64),
    /// One of these names; the value is its place.
    Names(&'static [&'static CStr]),
}

impl Setting {
    /// What it is now.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// What a text means for it.
    pub fn parse(&self, text: &[u8]) -> Option<i64> {
        match self.values {
            Values::Range(min, max) => {
                // As the server reads numbers: no sign that is not needed.
                let text = std::str::from_utf8(text)
                    .ok()
                    .filter(|text| !text.starts_with('+'))?;
                let number: i64 = text.parse().ok()?;
                (min..=max).contains(&number).then_some(number)
            }
            Values::Names(names) => {
                let place = names
                    .iter()
                    .position(|name| name.to_bytes().eq_ignore_ascii_case(text))?;
                i64::try_from(place).ok()
            }
        }
    }

    /// Registers it with this default; the server then sets it to what its configuration says.
    pub fn register(&'static self, context: Context<'_>, default: i64) -> Result<(), String> {
        let itself = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        let flags = raw::REDISMODULE_CONFIG_DEFAULT;
        let status = match self.values {
            Values::Range(min, max) => {
                // SAFETY: the name and the setting are static; the functions get the setting back.
                unsafe {
                    (context.api.register_numeric_config)(
                        context.raw,
                        self.name.as_ptr(),
                        default,
                        flags,
                        min,
                        max,
                        Some(get_number),
                        Some(set_number),
                        None,
                        itself,
                    )
                }
            }
            Values::Names(names) => {
                let mut texts: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
                let numbers: Vec<c_int> = (0..).take(names.len()).collect();
                let count = c_int::try_from(names.len()).unwrap_or(c_int::MAX);
                let default = c_int::try_from(default).unwrap_or_default();
                // SAFETY: as above; the server copies the names and numbers, of which there are `count`.
                unsafe {
                    (context.api.register_enum_config)(
                        context.raw,
                        self.name.as_ptr(),
                        default,
                        flags,
                        texts.as_mut_ptr(),
                        numbers.as_ptr(),
                        count,
                        Some(get_name),
                        Some(set_name),
                        None,
                        itself,
                    )
                }
            }
        };
        if status == OK {
            Ok(())
        } else {
            Err(format!(
                "the setting {} could not be registered",
                self.name.to_string_lossy()
            ))
        }
    }
}

/// Sets all registered settings to what the server's configuration says.
pub fn load(context: Context<'_>) -> Result<(), String> {
    // SAFETY: the context is that of the load, and the settings are registered.
    let status = unsafe { (context.api.load_configs)(context.raw) };
    if status == OK {
        Ok(())
    } else {
        Err("a setting `mailrl.…` in the server's configuration is unknown or out of range".into())
    }
}

/// The setting that the server hands back.
fn setting<'a>(itself: *mut c_void) -> &'a Setting {
    // SAFETY: only `register` gives this pointer to the server, and it is one to a static setting.
    unsafe { &*itself.cast_const().cast::<Setting>() }
}

extern "C" fn get_number(_name: *const c_char, itself: *mut c_void) -> c_longlong {
    setting(itself).get()
}

extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    itself: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    setting(itself).value.store(value, Ordering::Relaxed);
    OK
}

extern "C" fn get_name(_name: *const c_char, itself: *mut c_void) -> c_int {
    c_int::try_from(setting(itself).get()).unwrap_or_default()
}

extern "C" fn set_name(
    _name: *const c_char,
    value: c_int,
    itself: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    setting(itself).value.store(i64::from(value), Ordering::Relaxed);
    OK
}
