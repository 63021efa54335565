//! How a mailbox stands in Redis, as `MAILRL.STATUS` tells.

use redis::{Value, cmd};
use test_support::RedisServer;

use super::KEY;

/// How the mailbox of these tests stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailboxState {
    pub messages: i64,
    pub recipients: i64,
    pub open: i64,
    pub paused: bool,
}

/// So many messages and recipients used, nothing open, no pause.
pub fn used(messages: i64, recipients: i64) -> MailboxState {
    MailboxState {
        messages,
        recipients,
        open: 0,
        paused: false,
    }
}

/// A server whose windows do not roll over in the middle of a test.
pub fn server() -> RedisServer {
    RedisServer::with_module(["window", "rolling"])
}

pub fn state(server: &RedisServer) -> MailboxState {
    let status: Value = cmd("MAILRL.STATUS")
        .arg(KEY)
        .query(&mut server.connection())
        .expect("a status");
    MailboxState {
        messages: integer(&status, &["minute", "used"]),
        recipients: integer(&status, &["day", "used"]),
        open: integer(&status, &["open"]),
        paused: integer(&status, &["paused_for_ms"]) > 0,
    }
}

fn integer(status: &Value, path: &[&str]) -> i64 {
    let Some((name, rest)) = path.split_first() else {
        let Value::Int(number) = status else {
            panic!("not an integer: {status:?}");
        };
        return *number;
    };
    let Value::Array(entries) = status else {
        panic!("not a map: {status:?}");
    };
    let entry = entries
        .chunks_exact(2)
        .find(|entry| entry[0] == Value::BulkString(name.as_bytes().to_vec()));
    integer(
        &entry.unwrap_or_else(|| panic!("no {name} in {status:?}"))[1],
        rest,
    )
}
