//! A server that follows another.

use std::time::{Duration, Instant};

use crate::{Calls, RedisServer};

const DEADLINE: Duration = Duration::from_secs(20);

impl RedisServer {
    /// Waits until a replica has all that this server sent.
    ///
    /// # Panics
    /// If it does not come to that; the message holds the replica's log.
    pub fn wait_for_replica(&self, replica: &RedisServer) {
        let deadline = Instant::now() + DEADLINE;
        let (mut master, mut follower) = (self.connection(), replica.connection());
        loop {
            let sent = master.counter("replication", "master_repl_offset");
            let info: String = follower.ask("INFO replication");
            let up = info.contains("master_link_status:up");
            if up && info.contains(&format!("slave_repl_offset:{sent}\r")) {
                return;
            }
            assert!(Instant::now() < deadline, "{info}{}", replica.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
