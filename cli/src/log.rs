//! What is logged, and the last thing that went wrong with Redis.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use mailrl_client::{FailOpenCause, events};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, fmt as log_format};

use crate::args::{Log, LogFormat};
use crate::terminal::Terminal;

/// A log that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "--log {given:?} is no level ({error}): use off, error, warn, info, debug or trace, or a target and a level as mailrl_client=debug"
    )]
    Level {
        given: String,
        error: tracing_subscriber::filter::ParseError,
    },
    #[error(transparent)]
    Start(#[from] TryInitError),
}

/// Logs to stderr from now on.
pub fn start(args: &Log, usual: &str, terminal: &Terminal) -> Result<RedisTrouble, LogError> {
    // An empty variable is one that is not set.
    let said = args
        .log
        .as_deref()
        .map(str::trim)
        .filter(|level| !level.is_empty());
    let level = said.unwrap_or(usual);
    let filter = EnvFilter::builder()
        .parse(level)
        .map_err(|error| LogError::Level {
            given: level.to_owned(),
            error,
        })?;
    let layer = log_format::layer()
        .with_writer(LogWriter(terminal.clone()))
        .with_ansi(has_colours());
    let layer = match args.log_format {
        LogFormat::Text => layer.with_filter(filter).boxed(),
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    };
    let trouble = RedisTrouble::default();
    tracing_subscriber::registry()
        .with(layer)
        .with(trouble.clone().with_filter(LevelFilter::WARN))
        .try_init()?;
    Ok(trouble)
}

fn has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

struct LogWriter(Terminal);

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = &'a Terminal;

    fn make_writer(&'a self) -> Self::Writer {
        &self.0
    }
}

/// Remembers the last [`events::REDIS_ERROR`]: the decorator sends without a decision and, being a
/// mailer like any other, does not tell its caller why.
#[derive(Debug, Clone, Default)]
pub struct RedisTrouble(Arc<Mutex<Option<Trouble>>>);

/// What went wrong with Redis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trouble {
    /// One of the names of [`FailOpenCause`].
    pub cause: String,
    /// Redis's or the library's words.
    pub error: String,
}

impl RedisTrouble {
    /// The last that was logged, less than a second before any failure.
    pub fn last(&self) -> Trouble {
        self.lock().clone().unwrap_or_else(|| Trouble {
            cause: "unknown".into(),
            error: "it gave no decision".into(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for RedisTrouble {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.event != events::REDIS_ERROR {
            return;
        }
        let mut last = self.lock();
        // Redis not being asked is no news, what was wrong with it before is.
        if last.is_none() || fields.trouble.cause != FailOpenCause::CircuitOpen.as_str() {
            *last = Some(fields.trouble);
        }
    }
}

#[derive(Default)]
struct Fields {
    event: String,
    trouble: Trouble,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "event" => value.clone_into(&mut self.event),
            "cause" => value.clone_into(&mut self.trouble.cause),
            "error" => value.clone_into(&mut self.trouble.error),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use tracing::warn;

    use super::*;

    #[test]
    fn what_was_wrong_is_remembered_and_not_that_nobody_asked_since() {
        let trouble = RedisTrouble::default();
        let subscriber = tracing_subscriber::registry().with(trouble.clone());
        tracing::subscriber::with_default(subscriber, || {
            warn!(event = "another", cause = "x", error = "x");
            assert_eq!(trouble.last().cause, "unknown");
            warn!(
                event = events::REDIS_ERROR,
                cause = "circuit_open",
                error = "not asked"
            );
            assert_eq!(trouble.last().cause, "circuit_open");
            warn!(
                event = events::REDIS_ERROR,
                cause = "unreachable",
                error = "refused"
            );
            warn!(
                event = events::REDIS_ERROR,
                cause = "circuit_open",
                error = "not asked"
            );
            assert_eq!(
                (&*trouble.last().cause, &*trouble.last().error),
                ("unreachable", "refused")
            );
            warn!(event = events::REDIS_ERROR, cause = "timeout", error = "silent");
            assert_eq!(trouble.last().cause, "timeout");
        });
    }
}
