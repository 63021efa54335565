//! The one connection to a Redis: dialled when it is first needed, given up when it has gone silent.
//!
//! redis-rs's own `ConnectionManager` keeps an attempt that ended in a wrong password or in another
//! program's answer for good, and keeps a connection that only ever times out until TCP gives up, a
//! quarter of an hour later. Here every failure ends the connection, the next question dials anew,
//! and how often it may do so is bounded.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::time::timeout;

use crate::sentinel::Sentinels;

/// How long dialling may take. It goes on behind the back of callers whose deadline passes, so that
/// a handshake that is slower than one deadline still comes to an end.
const DIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// No more than two dials a second, whatever fails.
const DIAL_EVERY: Duration = Duration::from_millis(500);

/// A question that goes unanswered ends a connection on which nothing else was heard for so long: two
/// deadlines as they are by default, so that one slow answer does not. A connection that has been idle
/// goes at the first.
const SILENCE: Duration = Duration::from_millis(200);

/// The one connection to a Redis.
pub(crate) struct Link {
    dialler: Arc<Dialler>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    line: Option<Arc<Line>>,
    last_dial: Option<Instant>,
    last_error: Option<RedisError>,
}

impl State {
    fn may_dial(&self, now: Instant) -> bool {
        self.last_dial
            .is_none_or(|last| now.saturating_duration_since(last) >= DIAL_EVERY)
    }
}

/// How a connection is had.
enum Dialler {
    Server(redis::Client),
    Sentinels(Sentinels),
}

impl Dialler {
    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        // Whoever asks brings a deadline of its own.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(DIAL_TIMEOUT))
            .set_response_timeout(None);
        match self {
            Self::Server(client) => client.get_multiplexed_async_connection_with_config(&config).await,
            Self::Sentinels(sentinels) => sentinels.dial(&config).await,
        }
    }
}

/// One dialled (or still dialling) connection.
struct Line {
    connection: Shared<BoxFuture<'static, RedisResult<MultiplexedConnection>>>,
    hearing: Arc<Mutex<Hearing>>,
}

/// What has been heard on a connection.
#[derive(Default)]
struct Hearing {
    /// When something arrived last; never, while it is still being dialled.
    last: Option<Instant>,
    is_given_up: bool,
}

impl Link {
    /// To the server at one address.
    pub(crate) fn to_server(client: redis::Client) -> Self {
        Self::new(Dialler::Server(client))
    }

    /// To whichever server is the primary.
    pub(crate) fn by_sentinels(sentinels: Sentinels) -> Self {
        Self::new(Dialler::Sentinels(sentinels))
    }

    fn new(dialler: Dialler) -> Self {
        Self {
            dialler: Arc::new(dialler),
            state: Mutex::default(),
        }
    }

    /// Asks Redis; an error reply is an error. `is_arriving`: of a slot that is only just moving to
    /// this node of a cluster (`ASKING`).
    ///
    /// A connection that broke while nobody used it is found out by the next question, which is then
    /// asked on a new one. A question that Redis may have heard is never asked twice: it would count
    /// the mail twice.
    pub(crate) async fn ask(&self, command: &Cmd, is_arriving: bool) -> Result<Value, Failure> {
        match self.ask_once(command, is_arriving).await {
            Err(failure) if failure.is_unheard => self.ask_once(command, is_arriving).await,
            answer => answer,
        }
    }

    /// Told when a question went unanswered: gives a connection up on which nothing arrives any more.
    pub(crate) fn unanswered(&self) {
        if let Some(line) = &lock(&self.state).line {
            line.miss();
        }
    }

    async fn ask_once(&self, command: &Cmd, is_arriving: bool) -> Result<Value, Failure> {
        let line = self.line().map_err(Failure::unheard)?;
        let mut connection = match line.connection.clone().await {
            Ok(connection) => connection,
            Err(error) => {
                self.hang_up(&line, &error);
                return Err(Failure::unheard(error));
            }
        };
        let mut answer = pin!(send(&mut connection, command, is_arriving));
        // A question that is being written has no answer at once; one on a connection that was found
        // closed before has, and it is an error.
        let (answer, was_closed) = match poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await {
            Poll::Ready(answer) => (answer, true),
            Poll::Pending => (answer.await, false),
        };
        match answer.and_then(Value::extract_error) {
            Ok(value) => {
                lock(&line.hearing).hear();
                Ok(value)
            }
            Err(error) => {
                if ends_the_line(&error) {
                    self.hang_up(&line, &error);
                } else {
                    lock(&line.hearing).hear();
                }
                let is_unheard = was_closed && error.is_connection_dropped() || is_read_only(&error);
                Err(Failure { error, is_unheard })
            }
        }
    }

    /// The connection there is, else a new one; an error while it is too early to dial again.
    fn line(&self) -> RedisResult<Arc<Line>> {
        let mut state = lock(&self.state);
        let now = Instant::now();
        let may_dial = state.may_dial(now);
        if let Some(line) = &state.line
            && !(may_dial && lock(&line.hearing).is_given_up)
        {
            return Ok(Arc::clone(line));
        }
        if !may_dial {
            return Err(state.last_error.clone().unwrap_or_else(|| {
                RedisError::from((ErrorKind::Io, "the connection was lost a moment ago"))
            }));
        }
        let line = Arc::new(Line::dial(Arc::clone(&self.dialler)));
        state.last_dial = Some(now);
        state.line = Some(Arc::clone(&line));
        Ok(line)
    }

    fn hang_up(&self, line: &Arc<Line>, error: &RedisError) {
        let mut state = lock(&self.state);
        if state
            .line
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, line))
        {
            state.line = None;
            state.last_error = Some(error.clone());
        }
    }
}

impl Line {
    fn dial(dialler: Arc<Dialler>) -> Self {
        let hearing = Arc::new(Mutex::new(Hearing::default()));
        let heard = Arc::clone(&hearing);
        let connection = async move {
            let dial = timeout(DIAL_TIMEOUT, dialler.dial());
            let connection = dial
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            lock(&heard).hear();
            Ok(connection)
        }
        .boxed()
        .shared();
        tokio::spawn(connection.clone().map(drop));
        Self { connection, hearing }
    }

    fn miss(&self) {
        let mut hearing = lock(&self.hearing);
        hearing.is_given_up |= hearing.last.is_some_and(|last| last.elapsed() >= SILENCE);
    }
}

impl Hearing {
    fn hear(&mut self) {
        self.last = Some(Instant::now());
        self.is_given_up = false;
    }
}

async fn send(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
    is_arriving: bool,
) -> RedisResult<Value> {
    if !is_arriving {
        return connection.send_packed_command(command).await;
    }
    // In one piece: ASKING holds for the next command of the connection, whoever's that is.
    let mut both = redis::pipe();
    both.cmd("ASKING").add_command(command.clone());
    let mut answers = connection.send_packed_commands(&both, 0, 2).await?;
    answers.pop().ok_or_else(|| {
        RedisError::from((
            ErrorKind::UnexpectedReturnType,
            "ASKING and a command have two replies",
        ))
    })
}

/// Why there is no answer.
pub(crate) struct Failure {
    pub(crate) error: RedisError,
    /// Redis has certainly not done what it was asked to.
    pub(crate) is_unheard: bool,
}

impl Failure {
    fn unheard(error: RedisError) -> Self {
        Self {
            error,
            is_unheard: true,
        }
    }
}

/// True if nothing more is to be expected of the connection that gave this error. A replica that
/// refuses to write is left too: after a failover the same address leads to the new primary.
pub(crate) fn ends_the_line(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error() || is_read_only(error)
}

fn is_read_only(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
