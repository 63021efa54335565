//! Real servers for the tests: started on free ports, in a temporary directory each, ended on drop.

mod redis_server;

pub use redis_server::{RedisServer, RedisServerBuilder, free_port};

use std::path::PathBuf;

/// The module that `cargo build` made, or the one that `MAILRL_MODULE` names.
///
/// # Panics
/// If it has not been built.
#[must_use]
pub fn module_path() -> PathBuf {
    if let Some(path) = std::env::var_os("MAILRL_MODULE") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let path = test
        .ancestors()
        .nth(2)
        .expect("target/<profile>/deps/<test>")
        .join("libmailrl.so");
    assert!(
        path.exists(),
        "{} is missing: run `cargo build` first",
        path.display()
    );
    path
}
