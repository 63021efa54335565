//! The functions that the server gives to a module. They are taken once, at load: a server that
//! lacks one of them is refused then, and no command has to ask again.

use std::os::raw::{c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::OnceLock;

use redis_module::raw;

macro_rules! functions {
    ($($field:ident = $name:ident: $type:ty;)*) => {
        /// The functions that every supported server has (Redis 7.0 and later, Valkey 8 and later).
        pub struct Api { $(pub $field: $type,)* }

        impl Api {
            fn take() -> Result<Self, &'static str> {
                // SAFETY: these statics are written by `RedisModule_Init` alone, on this thread,
                // before this is called.
                unsafe { Ok(Self { $($field: raw::$name.ok_or(stringify!($name))?,)* }) }
            }
        }
    };
}

type Ctx = *mut raw::RedisModuleCtx;
type Text = *const c_char;
type String_ = *mut raw::RedisModuleString;
type Key = *mut raw::RedisModuleKey;
type InfoCtx = *mut raw::RedisModuleInfoCtx;
type ServerInfo = *mut raw::RedisModuleServerInfoData;

functions! {
    milliseconds = RedisModule_Milliseconds: unsafe extern "C" fn() -> raw::mstime_t;
    log = RedisModule_Log: unsafe extern "C" fn(Ctx, Text, Text, ...);
    create_string = RedisModule_CreateString: unsafe extern "C" fn(Ctx, Text, usize) -> String_;
    string_ptr_len = RedisModule_StringPtrLen: unsafe extern "C" fn(*const raw::RedisModuleString, *mut usize) -> Text;

    open_key = RedisModule_OpenKey: unsafe extern "C" fn(Ctx, String_, c_int) -> Key;
    close_key = RedisModule_CloseKey: unsafe extern "C" fn(Key);
    key_type = RedisModule_KeyType: unsafe extern "C" fn(Key) -> c_int;
    value_length = RedisModule_ValueLength: unsafe extern "C" fn(Key) -> usize;
    string_dma = RedisModule_StringDMA: unsafe extern "C" fn(Key, *mut usize, c_int) -> *mut c_char;
    string_truncate = RedisModule_StringTruncate: unsafe extern "C" fn(Key, usize) -> c_int;
    get_abs_expire = RedisModule_GetAbsExpire: unsafe extern "C" fn(Key) -> raw::mstime_t;
    set_abs_expire = RedisModule_SetAbsExpire: unsafe extern "C" fn(Key, raw::mstime_t) -> c_int;
    signal_modified_key = RedisModule_SignalModifiedKey: unsafe extern "C" fn(Ctx, String_) -> c_int;
    replicate = RedisModule_Replicate: unsafe extern "C" fn(Ctx, Text, Text, ...) -> c_int;

    reply_with_array = RedisModule_ReplyWithArray: unsafe extern "C" fn(Ctx, std::os::raw::c_long) -> c_int;
    reply_with_map = RedisModule_ReplyWithMap: unsafe extern "C" fn(Ctx, std::os::raw::c_long) -> c_int;
    reply_with_integer = RedisModule_ReplyWithLongLong: unsafe extern "C" fn(Ctx, c_longlong) -> c_int;
    reply_with_bulk = RedisModule_ReplyWithStringBuffer: unsafe extern "C" fn(Ctx, Text, usize) -> c_int;
    reply_with_empty = RedisModule_ReplyWithEmptyString: unsafe extern "C" fn(Ctx) -> c_int;
    reply_with_null = RedisModule_ReplyWithNull: unsafe extern "C" fn(Ctx) -> c_int;
    reply_with_error = RedisModule_ReplyWithError: unsafe extern "C" fn(Ctx, Text) -> c_int;

    set_module_options = RedisModule_SetModuleOptions: unsafe extern "C" fn(Ctx, c_int);
    create_command = RedisModule_CreateCommand: unsafe extern "C" fn(Ctx, Text, raw::RedisModuleCmdFunc, Text, c_int, c_int, c_int) -> c_int;
    get_command = RedisModule_GetCommand: unsafe extern "C" fn(Ctx, Text) -> *mut raw::RedisModuleCommand;
    set_command_info = RedisModule_SetCommandInfo: unsafe extern "C" fn(*mut raw::RedisModuleCommand, *const raw::RedisModuleCommandInfo) -> c_int;
    register_numeric_config = RedisModule_RegisterNumericConfig: unsafe extern "C" fn(Ctx, Text, c_longlong, c_uint, c_longlong, c_longlong, raw::RedisModuleConfigGetNumericFunc, raw::RedisModuleConfigSetNumericFunc, raw::RedisModuleConfigApplyFunc, *mut c_void) -> c_int;
    register_enum_config = RedisModule_RegisterEnumConfig: unsafe extern "C" fn(Ctx, Text, c_int, c_uint, *mut *const c_char, *const c_int, c_int, raw::RedisModuleConfigGetEnumFunc, raw::RedisModuleConfigSetEnumFunc, raw::RedisModuleConfigApplyFunc, *mut c_void) -> c_int;
    load_configs = RedisModule_LoadConfigs: unsafe extern "C" fn(Ctx) -> c_int;
    register_info_func = RedisModule_RegisterInfoFunc: unsafe extern "C" fn(Ctx, raw::RedisModuleInfoFunc) -> c_int;
    info_add_section = RedisModule_InfoAddSection: unsafe extern "C" fn(InfoCtx, Text) -> c_int;
    info_add_text = RedisModule_InfoAddFieldCString: unsafe extern "C" fn(InfoCtx, Text, Text) -> c_int;
    info_add_number = RedisModule_InfoAddFieldULongLong: unsafe extern "C" fn(InfoCtx, Text, std::os::raw::c_ulonglong) -> c_int;
    get_server_info = RedisModule_GetServerInfo: unsafe extern "C" fn(Ctx, Text) -> ServerInfo;
    server_info_field = RedisModule_ServerInfoGetFieldC: unsafe extern "C" fn(ServerInfo, Text) -> Text;
    free_server_info = RedisModule_FreeServerInfo: unsafe extern "C" fn(Ctx, ServerInfo);
}

static API: OnceLock<Api> = OnceLock::new();

impl Api {
    /// The functions, once the module is loaded.
    pub fn get() -> Option<&'static Self> {
        API.get()
    }

    /// Takes the functions from the server; an error names one that it lacks.
    pub fn load() -> Result<&'static Self, &'static str> {
        let api = Self::take()?;
        Ok(API.get_or_init(|| api))
    }
}
