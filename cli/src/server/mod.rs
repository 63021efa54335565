//! The Redis that is asked, and what to do when it does not answer.
//!
//! | file | subject |
//! | --- | --- |
//! | `reply` | what replies are made of |
//! | `trouble` | why there is no answer, for people and as JSON |

pub mod reply;
mod trouble;

use std::time::Duration;

use mailrl_client::{FailOpen, FailOpenCause};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, ToRedisArgs, Value};

use crate::config::{Config, ConfigError};
pub use trouble::{Trouble, json};

const PATIENCE: Duration = Duration::from_secs(2);

/// The Redis that is asked.
pub struct Server {
    connection: MultiplexedConnection,
    address: String,
}

impl Server {
    /// Connects, or knows why not.
    pub async fn connect(config: &Config) -> Result<Result<Self, Trouble>, ConfigError> {
        // It checks the address as a send would.
        config.limiter()?;
        Ok(Self::connect_to(config.redis_url()).await)
    }

    async fn connect_to(url: &str) -> Result<Self, Trouble> {
        let trouble = |failure, address: &str| Trouble {
            failure,
            address: address.to_owned(),
            needs: "+@connection",
        };
        let client = mailrl_client::open_redis(url)
            .map_err(|error| trouble(error.into(), "the configured address"))?;
        let address = client.get_connection_info().addr().to_string();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(Ok(connection)) => Ok(Self { connection, address }),
            Ok(Err(error)) => Err(trouble(error.into(), &address)),
            Err(_) => Err(trouble(no_answer(), &address)),
        }
    }

    /// Sends one of the module's commands for a mailbox's key, and reads its reply.
    pub async fn ask<T>(
        &self,
        command: Command,
        key: impl ToRedisArgs,
        arguments: &[String],
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, Trouble> {
        let mut question = redis::cmd(command.name());
        question.arg(key).arg(arguments);
        let reply = question.query_async(&mut self.connection.clone()).await;
        self.read(command, reply, read)
    }

    /// Sends the same for many keys in one round trip, and reads each reply; an error if there was none.
    pub async fn ask_each<T>(
        &self,
        command: Command,
        keys: &[&[u8]],
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<Result<T, Trouble>>, Trouble> {
        let mut questions = redis::pipe();
        for key in keys {
            questions.cmd(command.name()).arg(key);
        }
        let replies: Vec<Result<Value, RedisError>> = questions
            .ignore_errors()
            .query_async(&mut self.connection.clone())
            .await
            .map_err(|error| self.trouble(command, error.into()))?;
        let replies = replies.into_iter();
        Ok(replies.map(|reply| self.read(command, reply, &read)).collect())
    }

    /// One step of a scan over the keys that match: where to go on (0 at the end), and those found.
    pub async fn scan(
        &self,
        cursor: u64,
        pattern: &str,
        count: usize,
    ) -> Result<(u64, Vec<Vec<u8>>), Trouble> {
        redis::cmd("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg(pattern)
            .arg("COUNT")
            .arg(count)
            .query_async(&mut self.connection.clone())
            .await
            .map_err(|error: RedisError| self.trouble(Command::Scan, error.into()))
    }

    fn read<T>(
        &self,
        command: Command,
        reply: Result<Value, RedisError>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, Trouble> {
        let failure = match reply {
            Ok(reply) => match read(&reply) {
                Some(answer) => return Ok(answer),
                None => FailOpen {
                    cause: FailOpenCause::UnexpectedReply,
                    error: format!(
                        "not an answer to {}: {:.200}",
                        command.name(),
                        format!("{reply:?}")
                    ),
                },
            },
            Err(error) => error.into(),
        };
        Err(self.trouble(command, failure))
    }

    fn trouble(&self, command: Command, failure: FailOpen) -> Trouble {
        Trouble {
            failure,
            address: self.address.clone(),
            needs: command.permission(),
        }
    }
}

/// A command of the module, or what finds its keys.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    Limits,
    Pause,
    Scan,
    Status,
}

impl Command {
    const fn name(self) -> &'static str {
        match self {
            Self::Limits => "MAILRL.LIMITS",
            Self::Pause => "MAILRL.PAUSE",
            Self::Scan => "SCAN",
            Self::Status => "MAILRL.STATUS",
        }
    }

    /// What a user of Redis needs in its ACL.
    const fn permission(self) -> &'static str {
        match self {
            Self::Limits => "+mailrl.limits",
            Self::Pause => "+mailrl.pause",
            Self::Scan => "+scan",
            Self::Status => "+mailrl.status",
        }
    }
}

fn no_answer() -> FailOpen {
    FailOpen {
        cause: FailOpenCause::Timeout,
        error: "no answer".into(),
    }
}
