//! Why there is no answer, for people and as JSON.

use mailrl_client::{FailOpen, FailOpenCause, Mailbox};
use serde::Serialize;

use super::PATIENCE;

/// Why there is no answer.
#[derive(Debug, Clone)]
pub struct Trouble {
    pub(super) failure: FailOpen,
    pub(super) address: String,
    /// What the user of Redis may lack in its ACL.
    pub(super) needs: &'static str,
}

impl Trouble {
    /// The cause, as programs read it.
    pub fn reason(&self) -> &'static str {
        self.failure.cause.as_str()
    }

    /// What is wrong, and what to do about it.
    pub fn advice(&self) -> String {
        let Self {
            failure,
            address,
            needs,
        } = self;
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
                "the user at Redis may not ask this ({error}): allow it with ACL SETUSER <user> {needs} ~mailrl:*"
            ),
            FailOpenCause::WrongType | FailOpenCause::BadState => {
                format!("its key holds something that is not a mailbox's state ({error})")
            }
            FailOpenCause::ReadOnly => {
                format!("Redis at {address} only reads ({error}): set --redis or MAILRL_REDIS to its primary")
            }
            _ => format!("Redis at {address} gave no answer ({error})"),
        }
    }
}

/// One JSON object: the mailbox, and its answer or why there is none.
pub fn json<T: Serialize>(mailbox: &Mailbox, answer: &Result<T, Trouble>) -> String {
    #[derive(Serialize)]
    struct Json<'a, T> {
        mailbox: &'a str,
        #[serde(flatten)]
        answer: Answer<'a, T>,
    }
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Answer<'a, T> {
        Given(&'a T),
        None { reason: &'static str, error: String },
    }
    let answer = match answer {
        Ok(answer) => Answer::Given(answer),
        Err(trouble) => Answer::None {
            reason: trouble.reason(),
            error: trouble.advice(),
        },
    };
    let mailbox = mailbox.as_str();
    serde_json::to_string(&Json { mailbox, answer }).unwrap_or_default()
}
