//! `mailrl status`: what mailboxes have used, and when room comes.
//!
//! | file | subject |
//! | --- | --- |
//! | `reply` | the reply of `MAILRL.STATUS` |
//! | `show` | a status for people |

mod reply;
mod show;

use std::time::Duration;

use mailrl_client::{FailOpen, FailOpenCause, Mailbox};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use serde::Serialize;

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::terminal::Terminal;
use reply::Status;

const PATIENCE: Duration = Duration::from_secs(2);

/// Shows each mailbox, or why it cannot be shown.
pub async fn run(args: &args::Status, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    // It checks the address as a send would.
    config.limiter(PATIENCE)?;
    let server = Server::connect(config.redis_url()).await;
    let mut exit = Exit::Done;
    for name in &args.mailboxes {
        let mailbox = Mailbox::new(name);
        let status = match &server {
            Ok(server) => server.status(&mailbox).await,
            Err(trouble) => Err(trouble.clone()),
        };
        if status.is_err() {
            exit = Exit::Failed;
        }
        if args.json {
            let _ = terminal.out(&json(&mailbox, &status));
        } else {
            match status {
                Ok(status) => {
                    let _ = terminal.out(&show::lines(&mailbox, &status).join("\n"));
                }
                Err(trouble) => terminal.err(&format!("{mailbox}: {}", trouble.advice())),
            }
        }
        if server.is_err() && !args.json {
            break;
        }
    }
    Ok(exit)
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Status(&'a Status),
    Trouble { reason: &'static str, error: String },
}

fn json(mailbox: &Mailbox, status: &Result<Status, Trouble>) -> String {
    #[derive(Serialize)]
    struct Json<'a> {
        mailbox: &'a str,
        #[serde(flatten)]
        answer: Answer<'a>,
    }
    let answer = match status {
        Ok(status) => Answer::Status(status),
        Err(trouble) => Answer::Trouble {
            reason: trouble.failure.cause.as_str(),
            error: trouble.advice(),
        },
    };
    let mailbox = mailbox.as_str();
    serde_json::to_string(&Json { mailbox, answer }).unwrap_or_default()
}

/// The Redis that is asked.
struct Server {
    connection: MultiplexedConnection,
    address: String,
}

/// Why there is no status.
#[derive(Debug, Clone)]
struct Trouble {
    failure: FailOpen,
    address: String,
}

impl Server {
    async fn connect(url: &str) -> Result<Self, Trouble> {
        let client = redis::Client::open(url).map_err(|error| Trouble {
            failure: error.into(),
            address: String::from("the configured address"),
        })?;
        let address = client.get_connection_info().addr().to_string();
        let trouble = |failure| Trouble {
            failure,
            address: address.clone(),
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        let connection = match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(connection) => connection.map_err(|error| trouble(error.into()))?,
            Err(_) => return Err(trouble(no_answer())),
        };
        Ok(Self { connection, address })
    }

    async fn status(&self, mailbox: &Mailbox) -> Result<Status, Trouble> {
        let mut connection = self.connection.clone();
        let reply = redis::cmd("MAILRL.STATUS")
            .arg(mailbox.key())
            .query_async::<redis::Value>(&mut connection)
            .await;
        let failure = match reply {
            Ok(reply) => match Status::read(&reply) {
                Some(status) => return Ok(status),
                None => FailOpen {
                    cause: FailOpenCause::UnexpectedReply,
                    error: format!("not an answer to MAILRL.STATUS: {:.200}", format!("{reply:?}")),
                },
            },
            Err(error) => error.into(),
        };
        Err(Trouble {
            failure,
            address: self.address.clone(),
        })
    }
}

fn no_answer() -> FailOpen {
    FailOpen {
        cause: FailOpenCause::Timeout,
        error: "no answer".into(),
    }
}

impl Trouble {
    /// What is wrong, and what to do about it.
    fn advice(&self) -> String {
        let Self { failure, address } = self;
        let error = &failure.error;
        match failure.cause {
            FailOpenCause::Timeout => {
                format!(
                    "Redis at {address} did not answer within {} s",
                    PATIENCE.as_secs()
                )
            }
            FailOpenCause::Unreachable => {
                format!(
                    "Redis at {address} cannot be reached ({error}): start it, or set --redis or MAILRL_REDIS"
                )
            }
            FailOpenCause::NotRedis => {
                format!("what listens at {address} is not Redis ({error}): set --redis or MAILRL_REDIS")
            }
            FailOpenCause::ModuleMissing => format!(
                "Redis at {address} does not have the module: load libmailrl.so with redis-server --loadmodule \
                 /path/to/libmailrl.so window rolling, or a line loadmodule in its redis.conf"
            ),
            FailOpenCause::NoAuth => format!(
                "Redis at {address} wants a password, or another one ({error}): set it in the address, \
                 redis://user:password@host:port"
            ),
            FailOpenCause::NoPermission => format!(
                "the user at Redis may not ask this ({error}): allow it with ACL SETUSER <user> +mailrl.status ~mailrl:*"
            ),
            FailOpenCause::WrongType | FailOpenCause::BadState => {
                format!("its key holds something that is not a mailbox's state ({error})")
            }
            _ => format!("Redis at {address} gave no status ({error})"),
        }
    }
}
