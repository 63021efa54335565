//! Sentinels that watch over a primary and promote its replica.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{RedisServer, free_port};

const DEADLINE: Duration = Duration::from_secs(20);

/// How the sentinels call the primary.
pub const PRIMARY: &str = "mymaster";

/// One sentinel, ended on drop.
#[derive(Debug)]
pub struct Sentinel {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl Sentinel {
    /// Starts so many that watch over the primary, and waits until each knows the replica and the
    /// other sentinels. The primary counts as gone after `down_after_ms`.
    ///
    /// # Panics
    /// If they do not come up.
    #[must_use]
    pub fn start(count: usize, primary: &RedisServer, down_after_ms: u64) -> Vec<Self> {
        let sentinels: Vec<_> = (0..count)
            .map(|_| Self::spawn(count / 2 + 1, primary.port(), down_after_ms))
            .collect();
        let deadline = Instant::now() + DEADLINE;
        for sentinel in &sentinels {
            while !sentinel.knows_others(count - 1) {
                assert!(Instant::now() < deadline, "the sentinels do not find each other");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        sentinels
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn spawn(quorum: usize, primary: u16, down_after_ms: u64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let path = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\n\
             sentinel monitor {PRIMARY} 127.0.0.1 {primary} {quorum}\n\
             sentinel down-after-milliseconds {PRIMARY} {down_after_ms}\n\
             sentinel failover-timeout {PRIMARY} 5000\n",
            directory.path().display()
        );
        std::fs::write(&path, text).expect("room for a file");
        let server = std::env::var_os("MAILRL_REDIS_SERVER").unwrap_or("redis-server".into());
        let child = Command::new(server)
            .arg(path)
            .arg("--sentinel")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server (apt-get install redis-server)");
        Self {
            child,
            port,
            _directory: directory,
        }
    }

    fn knows_others(&self, sentinels: usize) -> bool {
        let state = redis::Client::open(self.url())
            .and_then(|client| client.get_connection())
            .and_then(|mut connection| {
                let mut command = redis::cmd("INFO");
                command.arg("sentinel").query::<String>(&mut connection)
            });
        state.is_ok_and(|info| info.contains(&format!("slaves=1,sentinels={}", sentinels + 1)))
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
