//! Real servers for the tests: started on free ports, in a temporary directory each, ended on drop.
//!
//! | file | subject |
//! | --- | --- |
//! | `redis_server` | a redis-server of a test's own |
//! | `replication` | one that follows another |
//! | `cluster` | a cluster of them |
//! | `sentinel` | sentinels that watch over one |
//! | `tls` | one over TLS |
//! | `clock` | its clock, moved at will |
//! | `append_only_file` | what it has written there |
//! | `calls` | the module's commands, as tests write them |
//! | `waiting` | waiting exactly as long as a denial says |
//! | `captured_log` | what a test logs |
//! | `module` | where the module is |

mod append_only_file;
mod calls;
mod captured_log;
mod clock;
mod cluster;
mod module;
mod redis_server;
mod replication;
mod sentinel;
mod tls;
mod waiting;

pub use append_only_file::Words;
pub use calls::{Answer, Calls, Overrides, Snapshot, Status, WindowStatus, error_text};
pub use captured_log::CapturedLog;
pub use clock::NOON_MS;
pub use cluster::RedisCluster;
pub use module::module_path;
pub use redis_server::{RedisServer, RedisServerBuilder, free_port};
pub use sentinel::{PRIMARY, Sentinel};
