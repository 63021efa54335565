//! Why Redis gave no decision.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::decision::FailOpen;

/// Why Redis gave no decision, so that the mail goes out uncounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailOpenCause {
    /// No answer within the deadline: frozen, overloaded, or the network lost it.
    Timeout,
    /// No connection: refused, reset, closed, or the name does not resolve.
    Unreachable,
    /// Redis failed a moment ago and was not asked again yet.
    CircuitOpen,
    /// What listens there does not speak Redis's protocol.
    NotRedis,
    /// Redis is still loading its data (`LOADING`).
    Loading,
    /// Redis takes no writes: it is a replica, its primary is gone, it has too few replicas, or the
    /// cluster has nobody for this mailbox (`READONLY`, `MASTERDOWN`, `NOREPLICAS`, `CLUSTERDOWN`).
    ReadOnly,
    /// Redis has no memory left (`OOM`).
    OutOfMemory,
    /// This Redis does not have the module: load `libmailrl.so`.
    ModuleMissing,
    /// Redis wants a password, or another one (`NOAUTH`, `WRONGPASS`).
    NoAuth,
    /// The user may not run the command or touch the key (`NOPERM`).
    NoPermission,
    /// The mailbox's key holds another type (`WRONGTYPE`).
    WrongType,
    /// The mailbox's key holds a string that the module did not write (`BADSTATE`).
    BadState,
    /// Any other error reply, such as a limit that is out of range.
    Refused,
    /// An answer that is not the one of this command.
    UnexpectedReply,
    /// The caller asked for no recipient at all; Redis was not asked.
    NoRecipients,
}

impl FailOpenCause {
    /// The cause as it stands in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::CircuitOpen => "circuit_open",
            Self::NotRedis => "not_redis",
            Self::Loading => "loading",
            Self::ReadOnly => "read_only",
            Self::OutOfMemory => "out_of_memory",
            Self::ModuleMissing => "module_missing",
            Self::NoAuth => "no_auth",
            Self::NoPermission => "no_permission",
            Self::WrongType => "wrong_type",
            Self::BadState => "bad_state",
            Self::Refused => "refused",
            Self::UnexpectedReply => "unexpected_reply",
            Self::NoRecipients => "no_recipients",
        }
    }

    /// True if asking again at once would only cost time: Redis itself did not answer.
    pub(crate) fn is_outage(self) -> bool {
        matches!(self, Self::Timeout | Self::Unreachable | Self::NotRedis)
    }

    /// True if it concerns the whole server, and may be over in a moment.
    pub(crate) fn is_server_wide(self) -> bool {
        self.is_outage()
            || matches!(
                self,
                Self::CircuitOpen
                    | Self::Loading
                    | Self::ReadOnly
                    | Self::OutOfMemory
                    | Self::ModuleMissing
                    | Self::NoAuth
            )
    }
}

impl fmt::Display for FailOpenCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl std::error::Error for FailOpenCause {}

impl From<RedisError> for FailOpen {
    fn from(error: RedisError) -> Self {
        Self::new(cause(&error), describe(&error))
    }
}

fn cause(error: &RedisError) -> FailOpenCause {
    match error.kind() {
        ErrorKind::Io if error.is_timeout() => FailOpenCause::Timeout,
        ErrorKind::Io => FailOpenCause::Unreachable,
        ErrorKind::Parse if is_half_a_reply(error) => FailOpenCause::Unreachable,
        ErrorKind::Parse => FailOpenCause::NotRedis,
        ErrorKind::AuthenticationFailed => FailOpenCause::NoAuth,
        ErrorKind::UnexpectedReturnType => FailOpenCause::UnexpectedReply,
        ErrorKind::Server(ServerErrorKind::ResponseError) if is_unknown_command(error) => {
            FailOpenCause::ModuleMissing
        }
        _ => match error.code() {
            Some("LOADING") => FailOpenCause::Loading,
            Some("READONLY" | "MASTERDOWN" | "NOREPLICAS" | "CLUSTERDOWN") => FailOpenCause::ReadOnly,
            Some("OOM") => FailOpenCause::OutOfMemory,
            Some("NOAUTH" | "WRONGPASS") => FailOpenCause::NoAuth,
            Some("NOPERM") => FailOpenCause::NoPermission,
            Some("WRONGTYPE") => FailOpenCause::WrongType,
            Some("BADSTATE") => FailOpenCause::BadState,
            _ => FailOpenCause::Refused,
        },
    }
}

/// The connection closed in the middle of a reply that was well-formed so far.
fn is_half_a_reply(error: &RedisError) -> bool {
    error.to_string().contains("end of input")
}

fn is_unknown_command(error: &RedisError) -> bool {
    error
        .detail()
        .is_some_and(|detail| detail.starts_with("unknown command"))
}

/// The error as Redis wrote it where it is an error reply, else as the library words it.
pub(crate) fn describe(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> FailOpen {
        redis::parse_redis_value(format!("-{line}\r\n").as_bytes())
            .and_then(redis::Value::extract_error)
            .expect_err("an error reply")
            .into()
    }

    #[test]
    fn each_error_reply_has_its_cause() {
        let table = [
            (
                "LOADING Redis is loading the dataset in memory",
                FailOpenCause::Loading,
            ),
            (
                "READONLY You can't write against a read only replica.",
                FailOpenCause::ReadOnly,
            ),
            (
                "NOREPLICAS Not enough good replicas to write.",
                FailOpenCause::ReadOnly,
            ),
            ("CLUSTERDOWN Hash slot not served", FailOpenCause::ReadOnly),
            ("MASTERDOWN Link with MASTER is down", FailOpenCause::ReadOnly),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                FailOpenCause::OutOfMemory,
            ),
            ("NOAUTH Authentication required.", FailOpenCause::NoAuth),
            ("WRONGPASS invalid username-password pair", FailOpenCause::NoAuth),
            (
                "NOPERM User a has no permissions to run the command",
                FailOpenCause::NoPermission,
            ),
            ("WRONGTYPE Operation against a key", FailOpenCause::WrongType),
            ("BADSTATE not a mailbox's state", FailOpenCause::BadState),
            (
                "ERR unknown command 'MAILRL.RESERVE', with args beginning with: ",
                FailOpenCause::ModuleMissing,
            ),
            ("ERR PERMINUTE is out of range", FailOpenCause::Refused),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                FailOpenCause::Refused,
            ),
            ("MOVED 3999 127.0.0.1:6381", FailOpenCause::Refused),
            ("WHATEVER", FailOpenCause::Refused),
        ];
        for (line, cause) in table {
            assert_eq!(reply(line).cause, cause, "{line}");
        }
    }

    #[test]
    fn an_error_reply_is_told_in_redis_words() {
        assert_eq!(reply("OOM no room").error, "OOM no room");
    }
}
