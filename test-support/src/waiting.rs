//! Waiting exactly as long as a denial says.

use redis::Connection;

use crate::{Calls, RedisServer};

impl RedisServer {
    /// Reserves, which is denied, and moves the clock: it is allowed exactly as late as the reply says and
    /// not 1 ms before. Gives the reason and the wait in ms. Turns would put it off: not with pacing.
    ///
    /// # Panics
    /// If it is otherwise.
    pub fn waits_exactly(&self, redis: &mut Connection, key: &str, arguments: &str) -> (String, u64) {
        let (reason, retry_after_ms) = redis.denied(key, arguments);
        self.move_clock_ms(retry_after_ms.cast_signed() - 1);
        let last = redis.denied(key, arguments);
        assert_eq!(last, (reason.clone(), 1), "{arguments} after {retry_after_ms} ms");
        self.move_clock_ms(1);
        redis.allowed(key, arguments);
        (reason, retry_after_ms)
    }
}
