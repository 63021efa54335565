//! The connection to the queue's Redis: dialled when it is first needed, given up when it has failed.
//!
//! redis-rs's own `ConnectionManager` keeps a connection that only ever times out, as one does whose
//! other end vanished without a word, until TCP gives up: a quarter of an hour later.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, ServerErrorKind,
    Value,
};

/// How long Redis may take to answer or to be connected to.
const PATIENCE: Duration = Duration::from_secs(2);

/// One connection; cheap to clone.
#[derive(Clone)]
pub(super) struct Connection {
    client: redis::Client,
    line: Arc<Mutex<Option<Line>>>,
}

/// One that is dialled, or still being dialled, for all who wait.
type Line = Shared<BoxFuture<'static, RedisResult<MultiplexedConnection>>>;

impl Connection {
    /// It does not connect yet.
    pub(super) fn new(client: redis::Client) -> Self {
        Self {
            client,
            line: Arc::default(),
        }
    }

    fn line(&self) -> Line {
        self.lock()
            .get_or_insert_with(|| dial(self.client.clone()))
            .clone()
    }

    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let line = self.line();
        let answer = match line.clone().await {
            Ok(mut connection) => question(&mut connection).await,
            Err(error) => Err(error),
        };
        if answer.as_ref().err().is_some_and(ends_the_line) {
            self.hang_up(&line);
        }
        answer
    }

    /// Gives a line up, unless there is a newer one.
    fn hang_up(&self, line: &Line) {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|current| current.ptr_eq(line)) {
            *current = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        // An error reply is a value among others down here.
        self.ask(async |line| line.send_packed_command(command).await?.extract_error())
            .boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.ask(async move |line| line.send_packed_commands(pipeline, offset, count).await)
            .boxed()
    }

    fn get_db(&self) -> i64 {
        self.client.get_connection_info().redis_settings().db()
    }
}

fn dial(client: redis::Client) -> Line {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let dialling = async move { client.get_multiplexed_async_connection_with_config(&config).await };
    dialling.boxed().shared()
}

/// True if nothing more is to be expected of the connection that gave this error. A replica that
/// refuses to write is left too: after a failover the same address leads to the new primary.
fn ends_the_line(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}
