//! The module's commands, as tests write them.

use std::collections::HashMap;

use redis::{Connection, FromRedisValue, Value};

/// A reply of `MAILRL.RESERVE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Allowed or not.
    pub allowed: bool,
    /// `ok`, or why not.
    pub reason: String,
    /// How long to wait, in ms.
    pub retry_after_ms: u64,
    /// Messages left in the minute.
    pub minute_left: u64,
    /// Recipients left in the day.
    pub day_left: u64,
    /// The reservation's id; empty when denied.
    pub reservation: String,
}

/// How one window stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowStatus {
    /// What is used.
    pub used: u64,
    /// What may be used.
    pub limit: u64,
    /// When there is room for one more, in ms from now.
    pub room_in_ms: u64,
}

/// The operator's limits of a mailbox, where there are any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Messages a minute.
    pub per_minute: Option<u64>,
    /// Recipients a day.
    pub per_day: Option<u64>,
    /// Open reservations at once.
    pub concurrent: Option<u64>,
}

/// A reply of `MAILRL.STATUS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `calendar` or `rolling`.
    pub window: String,
    /// Messages in the minute.
    pub minute: WindowStatus,
    /// Recipients in the day.
    pub day: WindowStatus,
    /// Open reservations.
    pub open: u64,
    /// For how long it is paused, in ms from now.
    pub paused_for_ms: u64,
    /// The operator's limits.
    pub overrides: Overrides,
}

/// What the server says of a key: its value as `DUMP` gives it, and when it expires in ms since 1970
/// (-1: never, -2: no such key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The value; none if there is no key.
    pub dump: Option<Vec<u8>>,
    /// The expiry.
    pub expires_at: i64,
}

/// Calls that a test makes on a connection. All of them panic on what they do not expect.
pub trait Calls {
    /// Sends a command given as words with single spaces between them, and expects no error.
    fn ask<T: FromRedisValue>(&mut self, words: &str) -> T;
    /// Sends a command given as words, and expects an error: its code and its text.
    fn refusal(&mut self, words: &str) -> String;
    /// `MAILRL.RESERVE`, with what follows the key.
    fn reserve(&mut self, key: &str, arguments: &str) -> Answer;
    /// `MAILRL.RELEASE`: whether it was open.
    fn release(&mut self, key: &str, reservation: &str) -> bool;
    /// `MAILRL.COMMIT`: whether it was open.
    fn commit(&mut self, key: &str, reservation: &str) -> bool;
    /// `MAILRL.PAUSE`: until when.
    fn pause(&mut self, key: &str, ms: u64) -> u64;
    /// `MAILRL.LIMITS`, with what follows the key, if anything does: the overrides, and the defaults
    /// for messages a minute and recipients a day.
    fn limits(&mut self, key: &str, arguments: &str) -> (Overrides, (u64, u64));
    /// `MAILRL.STATUS`.
    fn status(&mut self, key: &str) -> Status;
    /// The server's clock, in ms since 1970.
    fn now_ms(&mut self) -> u64;
    /// What stands under a key.
    fn snapshot(&mut self, key: &[u8]) -> Snapshot;
    /// The value's bytes; empty if there is no key.
    fn value(&mut self, key: &str) -> Vec<u8>;
    /// A field of `INFO` that is a number.
    fn counter(&mut self, section: &str, field: &str) -> u64;

    /// Reserves, which has to be allowed: the reservation.
    fn allowed(&mut self, key: &str, arguments: &str) -> String {
        let answer = self.reserve(key, arguments);
        assert!(answer.allowed, "{key} {arguments}: {answer:?}");
        answer.reservation
    }

    /// Reserves, which has to be denied: the reason and the wait in ms.
    fn denied(&mut self, key: &str, arguments: &str) -> (String, u64) {
        let answer = self.reserve(key, arguments);
        assert!(!answer.allowed, "{key} {arguments}: {answer:?}");
        (answer.reason, answer.retry_after_ms)
    }

    /// Messages used in the minute and recipients used in the day.
    fn used(&mut self, key: &str) -> (u64, u64) {
        let status = self.status(key);
        (status.minute.used, status.day.used)
    }
}

/// An error reply as the server wrote it.
#[must_use]
pub fn error_text(error: &redis::RedisError) -> String {
    format!(
        "{} {}",
        error.code().unwrap_or("(no code)"),
        error.detail().unwrap_or_default()
    )
}

fn command(words: &str) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    for word in words.split(' ') {
        command.arg(word);
    }
    command
}

impl Calls for Connection {
    fn ask<T: FromRedisValue>(&mut self, words: &str) -> T {
        command(words)
            .query(self)
            .unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    fn refusal(&mut self, words: &str) -> String {
        match command(words).query::<Value>(self) {
            Ok(reply) => panic!("{words}: no error, but {reply:?}"),
            Err(error) => error_text(&error),
        }
    }

    fn reserve(&mut self, key: &str, arguments: &str) -> Answer {
        let reply: (u8, String, u64, u64, u64, String) =
            self.ask(&format!("MAILRL.RESERVE {key} {arguments}"));
        let (allowed, reason, retry_after_ms, minute_left, day_left, reservation) = reply;
        Answer {
            allowed: allowed == 1,
            reason,
            retry_after_ms,
            minute_left,
            day_left,
            reservation,
        }
    }

    fn release(&mut self, key: &str, reservation: &str) -> bool {
        self.ask::<u8>(&format!("MAILRL.RELEASE {key} {reservation}")) == 1
    }

    fn commit(&mut self, key: &str, reservation: &str) -> bool {
        self.ask::<u8>(&format!("MAILRL.COMMIT {key} {reservation}")) == 1
    }

    fn pause(&mut self, key: &str, ms: u64) -> u64 {
        self.ask(&format!("MAILRL.PAUSE {key} {ms}"))
    }

    fn limits(&mut self, key: &str, arguments: &str) -> (Overrides, (u64, u64)) {
        let words = format!("MAILRL.LIMITS {key} {arguments}");
        let mut map: HashMap<String, Value> = self.ask(words.trim_end());
        let overrides = overrides(&mut map);
        let mut defaults: HashMap<String, Value> = field(&mut map, "defaults");
        let defaults = (
            field(&mut defaults, "per_minute"),
            field(&mut defaults, "recipients_per_day"),
        );
        (overrides, defaults)
    }

    fn status(&mut self, key: &str) -> Status {
        let mut map: HashMap<String, Value> = self.ask(&format!("MAILRL.STATUS {key}"));
        Status {
            window: field(&mut map, "window"),
            minute: window(&mut map, "minute"),
            day: window(&mut map, "day"),
            open: field(&mut map, "open"),
            paused_for_ms: field(&mut map, "paused_for_ms"),
            overrides: overrides(&mut map),
        }
    }

    fn now_ms(&mut self) -> u64 {
        let (seconds, microseconds): (u64, u64) = self.ask("TIME");
        seconds * 1_000 + microseconds / 1_000
    }

    fn snapshot(&mut self, key: &[u8]) -> Snapshot {
        let (dump, expires_at) = redis::pipe()
            .cmd("DUMP")
            .arg(key)
            .cmd("PEXPIRETIME")
            .arg(key)
            .query(self)
            .expect("DUMP and PEXPIRETIME work on every key");
        Snapshot { dump, expires_at }
    }

    fn value(&mut self, key: &str) -> Vec<u8> {
        self.ask(&format!("GET {key}"))
    }

    fn counter(&mut self, section: &str, field: &str) -> u64 {
        let info: String = self.ask(&format!("INFO {section}"));
        let value = info
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no number {field} in {info}"))
    }
}

fn window(map: &mut HashMap<String, Value>, name: &str) -> WindowStatus {
    let mut window: HashMap<String, Value> = field(map, name);
    WindowStatus {
        used: field(&mut window, "used"),
        limit: field(&mut window, "limit"),
        room_in_ms: field(&mut window, "room_in_ms"),
    }
}

fn overrides(map: &mut HashMap<String, Value>) -> Overrides {
    let mut overrides: HashMap<String, Value> = field(map, "overrides");
    Overrides {
        per_minute: field(&mut overrides, "per_minute"),
        per_day: field(&mut overrides, "recipients_per_day"),
        concurrent: field(&mut overrides, "concurrent"),
    }
}

fn field<T: FromRedisValue>(map: &mut HashMap<String, Value>, name: &str) -> T {
    let value = map.remove(name).unwrap_or_else(|| panic!("a status has {name}"));
    redis::from_redis_value(value).unwrap_or_else(|error| panic!("{name}: {error}"))
}
