//! The module's commands as the client words them, and its replies as the client reads them.
//!
//! Replies are read strictly: one that is not exactly what the command promises is no decision.

use std::time::{Duration, SystemTime};

use redis::{Cmd, RedisError, RedisResult, Value, cmd};

use crate::cause::{FailOpenCause, describe};
use crate::decision::{Decision, Denial, DenialReason, FailOpen, Reservation, TooLarge};
use crate::lane::Lane;
use crate::{Limits, Mailbox};

/// The furthest turn that a denial ever names.
const MAX_RETRY_AFTER_MS: i64 = 25 * 60 * 60 * 1000;

/// The longest pause that a mailbox can be given.
const MAX_PAUSE: Duration = Duration::from_hours(24);

/// What a reservation asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReserveOptions {
    pub(crate) limits: Limits,
    pub(crate) concurrent: Option<u32>,
    pub(crate) lease: Duration,
    pub(crate) lane: Lane,
}

pub(crate) fn reserve(mailbox: &Mailbox, recipients: u32, options: &ReserveOptions) -> Cmd {
    let mut command = cmd("MAILRL.RESERVE");
    command.arg(mailbox.key()).arg(recipients);
    if let Some(limit) = options.limits.per_minute {
        command.arg("PERMINUTE").arg(limit.get());
    }
    if let Some(limit) = options.limits.recipients_per_day {
        command.arg("PERDAY").arg(limit.get());
    }
    if let Some(concurrent) = options.concurrent {
        command.arg("CONCURRENT").arg(concurrent);
    }
    command.arg("LEASE").arg(milliseconds(options.lease));
    if options.lane == Lane::Bulk {
        command.arg("BULK");
    }
    command
}

pub(crate) fn release(reservation: &Reservation) -> Cmd {
    let mut command = cmd("MAILRL.RELEASE");
    command.arg(reservation.mailbox.key()).arg(&reservation.id);
    command
}

pub(crate) fn commit(reservation: &Reservation) -> Cmd {
    let mut command = cmd("MAILRL.COMMIT");
    command.arg(reservation.mailbox.key()).arg(&reservation.id);
    command
}

pub(crate) fn pause(mailbox: &Mailbox, length: Duration) -> Cmd {
    let mut command = cmd("MAILRL.PAUSE");
    command
        .arg(mailbox.key())
        .arg(milliseconds(length.min(MAX_PAUSE)));
    command
}

/// Reads the answer to [`reserve`]. `TOOLARGE` is the one error reply that is a decision.
pub(crate) fn read_reserve(mailbox: &Mailbox, answer: RedisResult<Value>) -> Result<Decision, FailOpen> {
    match answer {
        Ok(value) => read_decision(mailbox, &value).ok_or_else(|| unexpected("MAILRL.RESERVE", &value)),
        Err(error) if error.code() == Some("TOOLARGE") => Ok(Decision::TooLarge(too_large(&error))),
        Err(error) => Err(error.into()),
    }
}

/// Reads the answer to [`release`] and [`commit`]: was the reservation open?
pub(crate) fn read_settled(answer: RedisResult<Value>) -> Result<bool, FailOpen> {
    match answer? {
        Value::Int(0) => Ok(false),
        Value::Int(1) => Ok(true),
        other => Err(unexpected("MAILRL.RELEASE or MAILRL.COMMIT", &other)),
    }
}

/// Reads the answer to [`pause`]: until when is the mailbox paused?
pub(crate) fn read_pause(answer: RedisResult<Value>) -> Result<SystemTime, FailOpen> {
    let value = answer?;
    unsigned(&value)
        .and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)))
        .ok_or_else(|| unexpected("MAILRL.PAUSE", &value))
}

fn read_decision(mailbox: &Mailbox, value: &Value) -> Option<Decision> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [allowed, reason, retry_after_ms, minute_left, day_left, id] = parts.as_slice() else {
        return None;
    };
    let (minute_left, day_left) = (unsigned(minute_left)?, unsigned(day_left)?);
    let (reason, id) = (text(reason)?, text(id)?);
    match (allowed, retry_after_ms) {
        (Value::Int(1), Value::Int(0)) if reason == "ok" && !id.is_empty() => {
            Some(Decision::Allowed(Reservation {
                mailbox: mailbox.clone(),
                id: id.to_owned(),
                minute_left,
                day_left,
            }))
        }
        (Value::Int(0), Value::Int(ms @ 1..=MAX_RETRY_AFTER_MS)) if id.is_empty() => {
            Some(Decision::Denied(Denial {
                reason: denial_reason(reason)?,
                retry_after: Duration::from_millis(u64::try_from(*ms).ok()?),
            }))
        }
        _ => None,
    }
}

fn denial_reason(reason: &str) -> Option<DenialReason> {
    match reason {
        "minute" => Some(DenialReason::Minute),
        "day" => Some(DenialReason::Day),
        "concurrent" => Some(DenialReason::Concurrent),
        "paused" => Some(DenialReason::Paused),
        _ => None,
    }
}

fn too_large(error: &RedisError) -> TooLarge {
    TooLarge {
        message: error.detail().map_or_else(|| describe(error), str::to_owned),
    }
}

fn unexpected(command: &str, value: &Value) -> FailOpen {
    FailOpen::new(
        FailOpenCause::UnexpectedReply,
        format!("not an answer to {command}: {:.200}", format!("{value:?}")),
    )
}

fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// Whole milliseconds, rounded up: a pause that ends early is no pause.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn words(command: &Cmd) -> String {
        let words = command.args_iter().map(|argument| match argument {
            redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => panic!("only plain arguments"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn options() -> ReserveOptions {
        ReserveOptions {
            limits: Limits::default(),
            concurrent: None,
            lease: Duration::from_mins(2),
            lane: Lane::Normal,
        }
    }

    fn mailbox() -> Mailbox {
        Mailbox::new("a@b.c")
    }

    fn read(reply: &str) -> Result<Decision, FailOpen> {
        read_reserve(
            &mailbox(),
            redis::parse_redis_value(reply.as_bytes()).and_then(Value::extract_error),
        )
    }

    fn read_six(
        allowed: &str,
        reason: &str,
        retry: &str,
        minute: &str,
        day: &str,
        id: &str,
    ) -> Result<Decision, FailOpen> {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        read(&format!(
            "*6\r\n:{allowed}\r\n{}:{retry}\r\n:{minute}\r\n:{day}\r\n{}",
            bulk(reason),
            bulk(id)
        ))
    }

    #[test]
    fn only_configured_limits_are_sent() {
        assert_eq!(
            words(&reserve(&mailbox(), 3, &options())),
            "MAILRL.RESERVE mailrl:a@b.c 3 LEASE 120000"
        );
        let all = ReserveOptions {
            limits: Limits {
                per_minute: NonZeroU32::new(25),
                recipients_per_day: NonZeroU32::new(9000),
            },
            concurrent: Some(3),
            lease: Duration::from_millis(1500),
            lane: Lane::Bulk,
        };
        assert_eq!(
            words(&reserve(&mailbox(), 1, &all)),
            "MAILRL.RESERVE mailrl:a@b.c 1 PERMINUTE 25 PERDAY 9000 CONCURRENT 3 LEASE 1500 BULK"
        );
    }

    #[test]
    fn a_pause_is_rounded_up_and_no_longer_than_a_day() {
        let pause = |length| words(&pause(&mailbox(), length));
        assert_eq!(pause(Duration::from_micros(1)), "MAILRL.PAUSE mailrl:a@b.c 1");
        assert_eq!(
            pause(Duration::from_secs(u64::MAX)),
            "MAILRL.PAUSE mailrl:a@b.c 86400000"
        );
    }

    #[test]
    fn an_allowed_reservation_holds_what_redis_said() {
        let Ok(Decision::Allowed(reservation)) = read_six("1", "ok", "0", "24", "8997", "17-3") else {
            panic!("not allowed");
        };
        assert_eq!(reservation.mailbox(), &mailbox());
        assert_eq!(reservation.id(), "17-3");
        assert_eq!((reservation.minute_left(), reservation.day_left()), (24, 8997));
    }

    #[test]
    fn each_reason_of_a_denial_is_known() {
        for (word, reason) in [
            ("minute", DenialReason::Minute),
            ("day", DenialReason::Day),
            ("concurrent", DenialReason::Concurrent),
            ("paused", DenialReason::Paused),
        ] {
            let denial = Denial {
                reason,
                retry_after: Duration::from_millis(250),
            };
            assert_eq!(
                read_six("0", word, "250", "0", "1", ""),
                Ok(Decision::Denied(denial))
            );
            assert_eq!(reason.as_str(), word);
        }
    }

    #[test]
    fn a_mail_that_never_fits_comes_with_the_words_of_redis() {
        let expected = TooLarge {
            message: "600 recipients, 500 a day".into(),
        };
        assert_eq!(
            read("-TOOLARGE 600 recipients, 500 a day\r\n"),
            Ok(Decision::TooLarge(expected))
        );
    }

    #[test]
    fn any_other_reply_is_no_decision() {
        let six = [
            read_six("2", "ok", "0", "1", "1", "1-1"),
            read_six("1", "ok", "0", "1", "1", ""),
            read_six("1", "minute", "0", "1", "1", "1-1"),
            read_six("1", "ok", "5", "1", "1", "1-1"),
            read_six("1", "ok", "0", "-1", "1", "1-1"),
            read_six("1", "ok", "0", "1", "-1", "1-1"),
            read_six("0", "minute", "0", "1", "1", ""),
            read_six("0", "minute", "-5", "1", "1", ""),
            read_six("0", "minute", "90000001", "1", "1", ""),
            read_six("0", "minute", "5", "1", "1", "1-1"),
            read_six("0", "upstream", "5", "1", "1", ""),
            read_six("0", "ok", "5", "1", "1", ""),
        ];
        let others = [
            "+OK\r\n",
            "$-1\r\n",
            ":1\r\n",
            "*0\r\n",
            "*1\r\n:1\r\n",
            "*-1\r\n",
        ];
        for answer in six.into_iter().chain(others.map(read)) {
            let error = answer.expect_err("no decision");
            assert_eq!(error.cause, FailOpenCause::UnexpectedReply, "{error}");
        }
    }

    #[test]
    fn settling_answers_yes_or_no_and_nothing_else() {
        assert_eq!(read_settled(Ok(Value::Int(1))), Ok(true));
        assert_eq!(read_settled(Ok(Value::Int(0))), Ok(false));
        for other in [Value::Int(2), Value::Okay, Value::Nil] {
            let error = read_settled(Ok(other)).expect_err("no answer");
            assert_eq!(error.cause, FailOpenCause::UnexpectedReply);
        }
    }

    #[test]
    fn a_pause_answers_its_end() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
        assert_eq!(read_pause(Ok(Value::Int(1500))), Ok(end));
        assert!(read_pause(Ok(Value::Int(-1))).is_err());
        assert!(read_pause(Ok(Value::Nil)).is_err());
    }
}
