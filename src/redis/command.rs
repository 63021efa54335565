//! Registering commands: what they are called, what they may do, and how they are documented.

use std::ffi::{CStr, CString};
use std::os::raw::c_int;
use std::ptr::{null, null_mut};

use redis_module::raw;

use super::OK;
use super::context::Context;

/// The function that the server calls.
pub type Handler =
    unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;

/// A command, as `COMMAND DOCS` and `COMMAND INFO` show it. Its first argument is its one key.
pub struct CommandSpec {
    /// Its name.
    pub name: &'static CStr,
    /// What it does, in a line.
    pub summary: &'static CStr,
    /// What it costs.
    pub complexity: &'static CStr,
    /// How many arguments it takes, its name among them; negative: at least as many.
    pub arity: c_int,
    /// The server's command flags, as `write fast`.
    pub flags: &'static CStr,
    /// Its ACL categories, for servers that have them (7.2 and later).
    pub acl: &'static CStr,
    /// What it does with its key: `REDISMODULE_CMD_KEY_…`.
    pub key: u32,
    /// What follows the key.
    pub arguments: &'static [Argument],
    /// What runs.
    pub handler: Handler,
}

/// An argument after the key.
pub struct Argument {
    /// Its name.
    pub name: &'static CStr,
    /// The word before it.
    pub token: Option<&'static CStr>,
    /// What it is.
    pub kind: ArgumentKind,
}

/// What an argument is.
pub enum ArgumentKind {
    /// A number.
    Integer,
    /// A text.
    Text,
    /// Nothing but its word.
    Token,
}

impl CommandSpec {
    /// Registers the command.
    pub fn register(&self, context: Context<'_>) -> Result<(), String> {
        let failed = |what: &str| format!("{} could not be {what}", self.name.to_string_lossy());
        // SAFETY: all texts are static; the server copies what it keeps.
        let created = unsafe {
            (context.api.create_command)(
                context.raw,
                self.name.as_ptr(),
                Some(self.handler),
                self.flags.as_ptr(),
                1,
                1,
                1,
            )
        };
        if created != OK {
            return Err(failed("registered; is the module loaded already?"));
        }
        // SAFETY: the command has just been made under this name.
        let command = unsafe { (context.api.get_command)(context.raw, self.name.as_ptr()) };
        if command.is_null() || !self.document(context, command) {
            return Err(failed("documented"));
        }
        // SAFETY: read on the thread that loads the module; servers before 7.2 leave it empty.
        if let Some(set_categories) = unsafe { raw::RedisModule_SetCommandACLCategories } {
            // SAFETY: the command is valid, the text static.
            let status = unsafe { set_categories(command, self.acl.as_ptr()) };
            if status != OK {
                return Err(failed("put into its ACL categories"));
            }
        }
        Ok(())
    }

    fn document(&self, context: Context<'_>, command: *mut raw::RedisModuleCommand) -> bool {
        let since = CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
        let version = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        let mut key_specs = [self.key_spec(), end()];
        let mut arguments = vec![argument(
            c"key",
            None,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
        )];
        arguments.extend(self.arguments.iter().map(|given| {
            let kind = match given.kind {
                ArgumentKind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
                ArgumentKind::Text => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
                ArgumentKind::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
            };
            argument(given.name, given.token, kind)
        }));
        arguments.push(end());
        let info = raw::RedisModuleCommandInfo {
            version: &raw const version,
            summary: self.summary.as_ptr(),
            complexity: self.complexity.as_ptr(),
            since: since.as_ptr(),
            history: null_mut(),
            tips: null(),
            arity: self.arity,
            key_specs: key_specs.as_mut_ptr(),
            args: arguments.as_mut_ptr(),
        };
        // SAFETY: both lists end with a zeroed element; the server copies all of it.
        unsafe { (context.api.set_command_info)(command, &raw const info) == OK }
    }

    fn key_spec(&self) -> raw::RedisModuleCommandKeySpec {
        let mut spec: raw::RedisModuleCommandKeySpec = end();
        spec.flags = u64::from(self.key);
        spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        spec.bs.index = raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 1 };
        spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        spec.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
            lastkey: 0,
            keystep: 1,
            limit: 0,
        };
        spec
    }
}

/// An argument with a word before it may be left out.
fn argument(
    name: &'static CStr,
    token: Option<&'static CStr>,
    kind: raw::RedisModuleCommandArgType,
) -> raw::RedisModuleCommandArg {
    let mut argument: raw::RedisModuleCommandArg = end();
    argument.name = name.as_ptr();
    argument.type_ = kind;
    argument.key_spec_index = if kind == raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY {
        0
    } else {
        -1
    };
    if let Some(token) = token {
        argument.token = token.as_ptr();
        argument.flags = raw::REDISMODULE_CMD_ARG_OPTIONAL.cast_signed();
    }
    argument
}

/// The zeroed element that ends the server's lists.
fn end<T: Copy>() -> T {
    // SAFETY: used for two plain C structs of numbers, pointers and unions of numbers, for all of
    // which zero is a value.
    unsafe { std::mem::zeroed() }
}
