//! Which slot of a cluster a key has, and which node a slot has.

use crc16::{State, XMODEM};
use redis::{ErrorKind, RedisError, RedisResult, Value};

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// A node as the cluster names it: host and port.
pub(crate) type Address = (String, u16);

/// The slot of a key: that of its hash tag (what stands in its first braces), if it has one.
/// See <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags>.
pub(crate) fn slot(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag)
        .filter(|tag| !tag.is_empty());
    State::<XMODEM>::calculate(tag.unwrap_or(key).as_bytes()) % SLOTS
}

/// Slots that one node has, from the first to the last of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) primary: Address,
}

/// Reads a reply to `CLUSTER SLOTS`. A node that does not know its own host is found where it
/// answered.
pub(crate) fn read_slots(value: Value, answered_at: &str) -> RedisResult<Vec<Range>> {
    redis::from_redis_value::<Vec<Vec<Value>>>(value)?
        .into_iter()
        .map(|range| read_range(range, answered_at))
        .collect()
}

/// First and last slot, primary, replicas; a node is host, port and more.
fn read_range(range: Vec<Value>, answered_at: &str) -> RedisResult<Range> {
    let mut parts = range.into_iter();
    let (Some(first), Some(last), Some(primary)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unreadable());
    };
    let mut parts = redis::from_redis_value::<Vec<Value>>(primary)?.into_iter();
    let (Some(host), Some(port)) = (parts.next(), parts.next()) else {
        return Err(unreadable());
    };
    let host = redis::from_redis_value::<Option<String>>(host)?
        .filter(|host| !matches!(host.as_str(), "" | "?"))
        .unwrap_or_else(|| answered_at.to_owned());
    let range = Range {
        first: redis::from_redis_value(first)?,
        last: redis::from_redis_value(last)?,
        primary: (host, redis::from_redis_value(port)?),
    };
    if range.last < SLOTS {
        Ok(range)
    } else {
        Err(unreadable())
    }
}

fn unreadable() -> RedisError {
    RedisError::from((
        ErrorKind::UnexpectedReturnType,
        "the reply to CLUSTER SLOTS is not one",
    ))
}

/// Reads `host:port`, as `MOVED` and `ASK` give it; an empty host is that of the node that said so.
pub(crate) fn read_address(text: &str, said_by: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() { said_by } else { host };
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_redis_gives() {
        // As `CLUSTER KEYSLOT` of Redis 7.0.15 answered.
        let table = [
            ("123456789", 12_739),
            ("mailrl:a@example.com", 12_147),
            ("mailrl:{a}b@example.com", 15_495),
            ("mailrl:{}b@example.com", 11_065),
            ("mailrl:}{b@example.com", 13_877),
            ("mailrl:müller@example.com", 13_757),
        ];
        for (key, expected) in table {
            assert_eq!(slot(key), expected, "{key}");
        }
    }

    #[test]
    fn a_node_without_a_host_is_where_it_answered() {
        assert_eq!(read_address(":7001", "here"), Some(("here".into(), 7001)));
        assert_eq!(read_address("there:7001", "here"), Some(("there".into(), 7001)));
        assert_eq!(read_address("::1:7001", "here"), Some(("::1".into(), 7001)));
        assert_eq!(read_address("there", "here"), None);
        let reply = b"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$0\r\n\r\n:7001\r\n$2\r\nid\r\n";
        let ranges = read_slots(redis::parse_redis_value(reply).unwrap(), "here").unwrap();
        let expected = Range {
            first: 0,
            last: 16_383,
            primary: ("here".into(), 7001),
        };
        assert_eq!(ranges, [expected]);
    }

    #[test]
    fn a_reply_that_is_none_is_refused() {
        for reply in ["+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n"] {
            let value = redis::parse_redis_value(reply.as_bytes()).unwrap();
            assert!(read_slots(value, "here").is_err(), "{reply}");
        }
    }
}
