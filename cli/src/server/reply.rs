//! What replies are made of, as RESP3 gives them (maps) and as RESP2 does (flat arrays).

use redis::Value;
use serde::Serialize;

/// An operator's overrides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Overrides {
    pub per_minute: Option<u64>,
    pub recipients_per_day: Option<u64>,
    pub concurrent: Option<u64>,
}

impl Overrides {
    pub fn read(reply: &Value) -> Option<Self> {
        let reply = Map::of(reply)?;
        Some(Self {
            per_minute: reply.get("per_minute").and_then(number),
            recipients_per_day: reply.get("recipients_per_day").and_then(number),
            concurrent: reply.get("concurrent").and_then(number),
        })
    }
}

/// Names and what they have.
pub struct Map<'v>(Vec<(&'v Value, &'v Value)>);

impl<'v> Map<'v> {
    pub fn of(value: &'v Value) -> Option<Self> {
        match value {
            Value::Map(pairs) => Some(Self(pairs.iter().map(|(name, value)| (name, value)).collect())),
            Value::Array(flat) if flat.len() % 2 == 0 => Some(Self(
                flat.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
            )),
            _ => None,
        }
    }

    pub fn get(&self, wanted: &str) -> Option<&'v Value> {
        let is_wanted = |name: &Value| text(name).is_some_and(|name| name == wanted);
        self.0
            .iter()
            .find_map(|(name, value)| is_wanted(name).then_some(*value))
    }
}

pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

pub fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}
