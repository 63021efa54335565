//! What the demo plays on: a Redis with the module, a Graph, and a folder; and their end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use graph_sim::GraphSim;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::Failure;

pub const CLIENT_ID: &str = "demo";
pub const CLIENT_SECRET: &str = "not-a-secret";

const START_DEADLINE: Duration = Duration::from_secs(10);

/// As long as Graph takes for a mail, or a little less.
const LATENCY_MS: std::ops::RangeInclusive<u64> = 30..=150;

/// All that has to be ended.
pub struct Stage {
    pub graph: GraphSim,
    redis: Redis,
    folder: TempDir,
}

impl Stage {
    pub async fn set(module: &Path) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("mailrl-demo-").tempdir()?;
        let graph = GraphSim::builder()
            .client(CLIENT_ID, CLIENT_SECRET)
            .latency(LATENCY_MS)
            .try_start()
            .await?;
        let redis = Redis::start(module, folder.path()).await?;
        Ok(Self { graph, redis, folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.redis.port)
    }

    /// `INFO mailrl`, of which the fields whose names begin so are added up.
    pub async fn counted(&self, prefix: &str) -> Result<u64, Failure> {
        let mut connection = self.redis.connection().await?;
        let info: String = redis::cmd("INFO")
            .arg("mailrl")
            .query_async(&mut connection)
            .await?;
        let counts = info.lines().filter_map(|line| {
            let (name, count) = line.split_once(':')?;
            name.strip_prefix("mailrl_")?
                .starts_with(prefix)
                .then(|| count.trim().parse::<u64>().ok())?
        });
        Ok(counts.sum())
    }

    /// Ends Redis and takes the folder away.
    pub async fn clear(mut self) -> Result<(), Failure> {
        self.redis.child.kill().await?;
        self.folder.close()?;
        Ok(())
    }
}

struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    async fn start(module: &Path, folder: &Path) -> Result<Self, Failure> {
        let module = module.canonicalize()?;
        let log = folder.join("redis.log");
        // A free port can be taken by somebody else before the server has it.
        for _ in 0..3 {
            if let Some(redis) = Self::try_start(&module, folder, &log).await? {
                return Ok(redis);
            }
        }
        Err(format!("redis-server did not start:\n{}", read(&log)).into())
    }

    async fn try_start(module: &Path, folder: &Path, log: &PathBuf) -> Result<Option<Self>, Failure> {
        let port = free_port()?;
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .arg("--dir")
            .arg(folder)
            .arg("--logfile")
            .arg(log)
            .arg("--loadmodule")
            .arg(module)
            .args(["window", "rolling"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                format!("redis-server cannot be started: {error} (apt-get install redis-server)")
            })?;
        let mut redis = Self { child, port };
        let deadline = Instant::now() + START_DEADLINE;
        while Instant::now() < deadline {
            if redis.child.try_wait()?.is_some() {
                return Ok(None);
            }
            if redis.is_ready().await {
                return Ok(Some(redis));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(None)
    }

    /// Whoever else listens on this port has no module.
    async fn is_ready(&self) -> bool {
        let Ok(mut connection) = self.connection().await else {
            return false;
        };
        let status = redis::cmd("MAILRL.STATUS")
            .arg("mailrl:demo")
            .query_async::<redis::Value>(&mut connection)
            .await;
        status.is_ok()
    }

    async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        redis::Client::open(("127.0.0.1", self.port))?
            .get_multiplexed_async_connection()
            .await
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
