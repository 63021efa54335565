//! The reply of `MAILRL.STATUS`.

use redis::Value;
use serde::Serialize;

use crate::server::reply::{Map, Overrides, number, text};

/// How a mailbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// `calendar` or `rolling`.
    pub window: String,
    /// Messages in the minute.
    pub minute: Window,
    /// Recipients in the day.
    pub day: Window,
    /// Open reservations.
    pub open: u64,
    /// For how long it is paused, in ms from now.
    pub paused_for_ms: u64,
    /// What an operator has set for it.
    pub overrides: Overrides,
}

/// How one window stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    pub used: u64,
    pub limit: u64,
    /// When there is room for one more, in ms from now.
    pub room_in_ms: u64,
}

impl Status {
    /// Reads a reply; none if it is not one of `MAILRL.STATUS`. Fields that are not known here, a
    /// newer module may have.
    pub fn read(reply: &Value) -> Option<Self> {
        let reply = Map::of(reply)?;
        Some(Self {
            window: text(reply.get("window")?)?,
            minute: Window::read(reply.get("minute")?)?,
            day: Window::read(reply.get("day")?)?,
            open: number(reply.get("open")?)?,
            paused_for_ms: number(reply.get("paused_for_ms")?)?,
            overrides: Overrides::read(reply.get("overrides")?)?,
        })
    }
}

impl Window {
    fn read(reply: &Value) -> Option<Self> {
        let reply = Map::of(reply)?;
        Some(Self {
            used: number(reply.get("used")?)?,
            limit: number(reply.get("limit")?)?,
            room_in_ms: number(reply.get("room_in_ms")?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(reply: &str) -> Option<Status> {
        Status::read(&redis::parse_redis_value(reply.as_bytes()).unwrap())
    }

    const FIELDS: &str = "+window\r\n+rolling\r\n\
        +minute\r\n[3]+used\r\n:3\r\n+limit\r\n:25\r\n+room_in_ms\r\n:0\r\n\
        +day\r\n[3]+used\r\n:7\r\n+limit\r\n:9000\r\n+room_in_ms\r\n:12\r\n\
        +open\r\n:1\r\n+paused_for_ms\r\n:500\r\n\
        +overrides\r\n[3]+per_minute\r\n:10\r\n+recipients_per_day\r\n[nil]+concurrent\r\n[nil]";

    #[test]
    fn maps_and_flat_arrays_are_the_same_status() {
        let resp3 = format!(
            "%6\r\n{}",
            FIELDS.replace("[3]", "%3\r\n").replace("[nil]", "_\r\n")
        );
        let resp2 = format!(
            "*12\r\n{}",
            FIELDS.replace("[3]", "*6\r\n").replace("[nil]", "$-1\r\n")
        );
        let status = parse(&resp2).unwrap();
        assert_eq!(parse(&resp3), Some(status.clone()));
        assert_eq!(status.window, "rolling");
        assert_eq!((status.minute.used, status.minute.limit), (3, 25));
        assert_eq!((status.day.used, status.day.room_in_ms), (7, 12));
        assert_eq!((status.open, status.paused_for_ms), (1, 500));
        assert_eq!(
            status.overrides,
            Overrides {
                per_minute: Some(10),
                ..Overrides::default()
            }
        );
    }

    #[test]
    fn what_is_no_status_is_not_taken_for_one() {
        for reply in [
            "+OK\r\n",
            "*0\r\n",
            "*1\r\n:1\r\n",
            "*2\r\n+window\r\n+rolling\r\n",
            "$-1\r\n",
        ] {
            assert_eq!(parse(reply), None, "{reply:?}");
        }
    }
}
