//! How the simulator is told to misbehave.

use std::ops::RangeInclusive;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

/// One way to misbehave, for some of the requests to come.
///
/// At each [`Moment`] of a request the oldest fault that matches strikes. As JSON, all fields but
/// `then` may be left out:
///
/// ```
/// # use graph_sim::Fault;
/// let fault: Fault = serde_json::from_str(
///     r#"{
///         "target": "send_mail",
///         "mailbox": "news@example.com",
///         "times": 3,
///         "delay": {"min_ms": 100, "max_ms": 3000},
///         "at": "accepted",
///         "then": {"answer": {"status": 504, "code": "UnknownError", "retry_after": ["120"]}}
///     }"#,
/// )
/// .unwrap();
/// let same = Fault::answer(504)
///     .code("UnknownError")
///     .retry_after("120")
///     .after_accepting()
///     .delayed(100..=3000)
///     .mailbox("news@example.com")
///     .times(3);
/// assert_eq!(fault, same);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which requests.
    #[serde(default)]
    pub target: Target,
    /// Only those of this mailbox; of any if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<String>,
    /// How often it strikes: once if neither this nor a share is given, for ever if only a share is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The share of the requests that it strikes, over 0 to 1; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How long to wait before what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayRange>,
    /// When it strikes.
    #[serde(default)]
    pub at: Moment,
    /// What then happens.
    pub then: Then,
}

/// Which endpoint misbehaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// `sendMail`.
    #[default]
    SendMail,
    /// The token endpoint.
    Token,
}

/// How far a request gets before it is struck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Its head was read, its body was not.
    Head,
    /// All of it was read, nothing was done.
    #[default]
    Body,
    /// The mail was accepted and counts (the token was issued), nothing was answered. A request
    /// that is refused gets its refusal and leaves the fault in place for the next.
    Accepted,
}

/// What happens to a request that is struck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// This answer.
    Answer(Answer),
    /// The connection is reset (a TCP RST).
    Reset,
    /// Nothing, for as long as the client holds on.
    Hang,
    /// All goes on as ever, after the delay.
    Proceed,
}

/// An answer of one's own making.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The HTTP status, 200 to 599.
    pub status: u16,
    /// The error's `code`; without one and without a body, the body is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The error's `message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Any `Retry-After` headers, as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_after: Vec<String>,
    /// The whole body, in place of the error as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// A random delay between two bounds, both included, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayRange {
    /// The shortest.
    pub min_ms: u64,
    /// The longest.
    pub max_ms: u64,
}

/// A fault that cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The share is not over 0 and up to 1.
    #[error("share must be over 0 and at most 1")]
    Share,
    /// The status is not one that an answer can have.
    #[error("status must be from 200 to 599")]
    Status,
    /// A `Retry-After` holds what no header can.
    #[error("retry_after must hold visible characters only")]
    RetryAfter,
    /// The delay's bounds are the wrong way round.
    #[error("min_ms must not exceed max_ms")]
    Delay,
}

impl Fault {
    /// Answers with this status, 200 to 599.
    #[must_use]
    pub fn answer(status: u16) -> Self {
        Self::new(Then::Answer(Answer {
            status,
            ..Answer::default()
        }))
    }

    /// Resets the connection.
    #[must_use]
    pub fn reset() -> Self {
        Self::new(Then::Reset)
    }

    /// Never answers.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(Then::Hang)
    }

    /// Takes longer than usual, in milliseconds.
    #[must_use]
    pub fn slow(delay_ms: RangeInclusive<u64>) -> Self {
        Self::new(Then::Proceed).delayed(delay_ms)
    }

    fn new(then: Then) -> Self {
        Self {
            target: Target::default(),
            mailbox: None,
            times: None,
            share: None,
            delay: None,
            at: Moment::default(),
            then,
        }
    }

    /// With this error code. Only an answer has one.
    #[must_use]
    pub fn code(self, code: &str) -> Self {
        self.with_answer(|answer| answer.code = Some(code.into()))
    }

    /// With this error message. Only an answer has one.
    #[must_use]
    pub fn message(self, message: &str) -> Self {
        self.with_answer(|answer| answer.message = Some(message.into()))
    }

    /// With this `Retry-After`, in addition to those that it has. Only an answer has any.
    #[must_use]
    pub fn retry_after(self, value: &str) -> Self {
        self.with_answer(|answer| answer.retry_after.push(value.into()))
    }

    /// With this body, whatever it is. Only an answer has one.
    #[must_use]
    pub fn body(self, body: &str) -> Self {
        self.with_answer(|answer| answer.body = Some(body.into()))
    }

    /// Strikes before the body was read.
    #[must_use]
    pub fn before_the_body(self) -> Self {
        Self {
            at: Moment::Head,
            ..self
        }
    }

    /// Strikes once the mail was accepted (the token issued).
    #[must_use]
    pub fn after_accepting(self) -> Self {
        Self {
            at: Moment::Accepted,
            ..self
        }
    }

    /// Strikes after a random delay in milliseconds.
    #[must_use]
    pub fn delayed(self, delay_ms: RangeInclusive<u64>) -> Self {
        Self {
            delay: Some(delay_ms.into()),
            ..self
        }
    }

    /// Strikes the token endpoint.
    #[must_use]
    pub fn on_token(self) -> Self {
        Self {
            target: Target::Token,
            ..self
        }
    }

    /// Strikes this mailbox only.
    #[must_use]
    pub fn mailbox(self, mailbox: &str) -> Self {
        Self {
            mailbox: Some(mailbox.into()),
            ..self
        }
    }

    /// Strikes so often.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }

    /// Strikes this share of the requests, over 0 to 1, drawn from the simulator's seed.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        Self {
            share: Some(share),
            ..self
        }
    }

    fn with_answer(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        if let Then::Answer(answer) = &mut self.then {
            change(answer);
        }
        self
    }

    fn check(&self) -> Result<(), FaultError> {
        if self.share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(FaultError::Share);
        }
        if let Some(delay) = self.delay {
            delay.check()?;
        }
        if let Then::Answer(answer) = &self.then {
            if !(200..600).contains(&answer.status) || StatusCode::from_u16(answer.status).is_err() {
                return Err(FaultError::Status);
            }
            if answer
                .retry_after
                .iter()
                .any(|value| HeaderValue::from_str(value).is_err())
            {
                return Err(FaultError::RetryAfter);
            }
        }
        Ok(())
    }

    fn times_left(&self) -> u32 {
        let unlimited = if self.share.is_some() { u32::MAX } else { 1 };
        self.times.unwrap_or(unlimited)
    }

    fn concerns(&self, target: Target, mailbox: &str) -> bool {
        let concerns = |wanted: &String| wanted.trim().eq_ignore_ascii_case(mailbox);
        self.target == target && self.mailbox.as_ref().is_none_or(concerns)
    }
}

impl DelayRange {
    pub(crate) fn check(self) -> Result<(), FaultError> {
        if self.min_ms > self.max_ms {
            Err(FaultError::Delay)
        } else {
            Ok(())
        }
    }

    pub(crate) fn pick(self, random: &mut StdRng) -> Duration {
        Duration::from_millis(random.random_range(self.min_ms..=self.max_ms))
    }
}

impl From<RangeInclusive<u64>> for DelayRange {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self {
            min_ms: *range.start(),
            max_ms: *range.end(),
        }
    }
}

/// The faults that are still to strike, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(Fault, u32)>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) -> Result<(), FaultError> {
        fault.check()?;
        let left = fault.times_left();
        self.0.push((fault, left));
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault that strikes a request which has come to this moment.
    pub(crate) fn strike(
        &mut self,
        at: Moment,
        target: Target,
        mailbox: &str,
        random: &mut StdRng,
    ) -> Option<Strike> {
        let struck = self.0.iter_mut().find(|(fault, left)| {
            *left > 0
                && fault.at == at
                && fault.concerns(target, mailbox)
                && fault.share.is_none_or(|share| random.random_bool(share))
        });
        let (fault, left) = struck?;
        // A share alone goes on for ever.
        if fault.times.is_some() || fault.share.is_none() {
            *left -= 1;
        }
        let strike = Strike {
            delay: fault.delay.map_or(Duration::ZERO, |delay| delay.pick(random)),
            then: fault.then.clone(),
        };
        self.0.retain(|(_, left)| *left > 0);
        Some(strike)
    }
}

/// A fault at the moment when it strikes.
#[derive(Debug)]
pub(crate) struct Strike {
    pub(crate) delay: Duration,
    pub(crate) then: Then,
}
