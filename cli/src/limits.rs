//! `mailrl limits`: an operator's overrides, beside the module's defaults.

use mailrl_client::Mailbox;
use redis::Value;
use serde::Serialize;

use crate::args::{self, LimitsChange};
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::server::reply::{Map, Overrides, number};
use crate::server::{Command, Server, Trouble, json};
use crate::terminal::Terminal;
use crate::words::grouped;

/// Sets what is given, and shows what holds then.
pub async fn run(args: &args::Limits, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let mailbox = Mailbox::new(&args.mailbox);
    let limits = match Server::connect(config).await? {
        Ok(server) => {
            server
                .ask(
                    Command::Limits,
                    mailbox.key(),
                    &arguments(&args.change),
                    Limits::read,
                )
                .await
        }
        Err(trouble) => Err(trouble),
    };
    let exit = if limits.is_ok() { Exit::Done } else { Exit::Failed };
    if args.json {
        let _ = terminal.out(&json(&mailbox, &limits));
        return Ok(exit);
    }
    match limits {
        Ok(limits) => {
            let _ = terminal.out(&limits.lines(&mailbox).join("\n"));
        }
        Err(trouble) => terminal.err(&format!("{mailbox}: {}", trouble.advice())),
    }
    Ok(exit)
}

/// Changes the limits of the mailbox of this key.
pub async fn change_on(server: &Server, key: &[u8], change: &LimitsChange) -> Result<(), Trouble> {
    server
        .ask(Command::Limits, key, &arguments(change), Limits::read)
        .await
        .map(drop)
}

/// What follows the key.
fn arguments(change: &LimitsChange) -> Vec<String> {
    if change.reset {
        return vec!["RESET".into()];
    }
    let given = [
        ("PERMINUTE", change.per_minute),
        ("PERDAY", change.recipients_per_day),
        ("CONCURRENT", change.concurrent),
    ];
    given
        .into_iter()
        .filter_map(|(name, limit)| Some([name.to_owned(), limit?.to_string()]))
        .flatten()
        .collect()
}

/// The reply of `MAILRL.LIMITS`.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Limits {
    overrides: Overrides,
    defaults: Defaults,
}

/// The module's configuration. It has no default for `CONCURRENT`, which each caller asks for.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Defaults {
    per_minute: u64,
    recipients_per_day: u64,
}

impl Limits {
    fn read(reply: &Value) -> Option<Self> {
        let reply = Map::of(reply)?;
        let defaults = Map::of(reply.get("defaults")?)?;
        Some(Self {
            overrides: Overrides::read(reply.get("overrides")?)?,
            defaults: Defaults {
                per_minute: number(defaults.get("per_minute")?)?,
                recipients_per_day: number(defaults.get("recipients_per_day")?)?,
            },
        })
    }

    fn lines(&self, mailbox: &Mailbox) -> Vec<String> {
        let Self { overrides, defaults } = self;
        let row = |name: &str, limit: Option<u64>, default: &str| {
            let limit = limit.map_or_else(|| "-".into(), grouped);
            format!("  {name:<20} {limit:>13}  {default:>13}")
        };
        vec![
            mailbox.to_string(),
            format!("  {:<20} {:>13}  {:>13}", "", "override", "default"),
            row(
                "messages a minute",
                overrides.per_minute,
                &grouped(defaults.per_minute),
            ),
            row(
                "recipients a day",
                overrides.recipients_per_day,
                &grouped(defaults.recipients_per_day),
            ),
            row("sends at once", overrides.concurrent, "the sender's"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_flat_arrays_are_the_same_limits() {
        let resp2 = "*4\r\n+overrides\r\n*6\r\n+per_minute\r\n:10\r\n+recipients_per_day\r\n$-1\r\n\
            +concurrent\r\n$-1\r\n+defaults\r\n*4\r\n+per_minute\r\n:25\r\n+recipients_per_day\r\n:9000\r\n";
        let resp3 = "%2\r\n+overrides\r\n%3\r\n+per_minute\r\n:10\r\n+recipients_per_day\r\n_\r\n\
            +concurrent\r\n_\r\n+defaults\r\n%2\r\n+per_minute\r\n:25\r\n+recipients_per_day\r\n:9000\r\n";
        let read = |reply: &str| Limits::read(&redis::parse_redis_value(reply.as_bytes()).unwrap());
        let limits = read(resp2).unwrap();
        assert_eq!(limits.overrides.per_minute, Some(10));
        assert_eq!(limits.overrides.recipients_per_day, None);
        assert_eq!(limits.defaults.recipients_per_day, 9_000);
        assert_eq!(read(resp3), Some(limits));
        assert_eq!(read("+OK\r\n"), None);
        assert_eq!(read("*2\r\n+overrides\r\n*0\r\n"), None);
    }
}
