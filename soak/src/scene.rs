//! The Redis, the Graph and the workers of a run, and what can be done to them.

use std::path::Path;
use std::time::Duration;

use graph_sim::{Fault as Misbehaviour, GraphSim, Limits};
use tempfile::TempDir;
use test_support::RedisServer;
use tokio::sync::Mutex;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::crew::Crew;
use crate::journal::Journal;
use crate::mailboxes::{GRAPH_TAKES, PER_MINUTE};
use crate::plan::Fault;

/// As long as Graph takes for a mail, or a little less.
const LATENCY_MS: std::ops::RangeInclusive<u64> = 30..=150;
/// Some of these are past the workers' time-out.
const SLOW_MS: std::ops::RangeInclusive<u64> = 500..=2_600;
/// The share of the requests that a misbehaving Graph strikes.
const SHARE: f64 = 0.5;
/// Redis is back by then, whatever was done to it.
const OPERATOR_GIVES_UP_AFTER: Duration = Duration::from_secs(30);

/// All that has to be ended. Each track of faults locks its own part only.
pub struct Scene {
    pub graph: GraphSim,
    pub redis_url: String,
    pub folder: TempDir,
    pub journal: Journal,
    redis: Mutex<RedisServer>,
    crew: Mutex<Crew>,
}

impl Scene {
    pub async fn set(mailrl: &Path, seed: u64) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("mailrl-soak-").tempdir()?;
        let graph = GraphSim::builder()
            .limits(Limits {
                messages: GRAPH_TAKES,
                recipients: u64::MAX,
                ..Limits::default()
            })
            .latency(LATENCY_MS)
            .seed(seed)
            .try_start()
            .await?;
        let redis = block_in_place(|| {
            RedisServer::builder()
                .arguments(["--appendonly", "yes"])
                .arguments(["--appendfsync", "always"])
                .module(["window", "rolling"])
                .try_start()
        })?;
        let journal = Journal::begin();
        let crew = Crew::start(mailrl, folder.path(), &redis.url(), &graph.base_url(), &journal).await?;
        Ok(Self {
            graph,
            redis_url: redis.url(),
            folder,
            journal,
            redis: Mutex::new(redis),
            crew: Mutex::new(crew),
        })
    }

    /// Has a fault hold for so long.
    pub async fn strike(&self, fault: Fault, length: Duration) -> Result<(), Failure> {
        match fault {
            Fault::KillRedis => {
                let mut redis = self.redis.lock().await;
                block_in_place(|| self.read_counters(&redis))?;
                redis.kill();
                self.journal.redis_killed();
                sleep(length).await;
                block_in_place(|| redis.restart());
            }
            Fault::FreezeRedis => {
                let redis = self.redis.lock().await;
                redis.freeze();
                sleep(length).await;
                redis.thaw();
            }
            Fault::KillWorker { draw } => {
                let mut crew = self.crew.lock().await;
                let number = crew.kill(draw).await?;
                sleep(length).await;
                crew.restart(number).await?;
            }
            Fault::GraphThrottles => {
                let throttled = Misbehaviour::answer(429).code("ApplicationThrottled");
                self.misbehave(throttled.retry_after("2"), length).await?;
            }
            Fault::GraphIsUnavailable => self.misbehave(Misbehaviour::answer(503), length).await?,
            Fault::GraphLosesAnswers => {
                self.misbehave(Misbehaviour::reset().after_accepting(), length)
                    .await?;
            }
            Fault::GraphIsSlow => {
                self.graph.set_latency(SLOW_MS);
                sleep(length).await;
                self.graph.set_latency(LATENCY_MS);
            }
            Fault::Pause { mailbox } => {
                self.operate("MAILRL.PAUSE", mailbox, &["60000"]).await?;
                sleep(length).await;
                self.operate("MAILRL.PAUSE", mailbox, &["0"]).await?;
            }
            Fault::Limit { mailbox, per_minute } => {
                // While the command is under way either limit may hold.
                let highest = per_minute.max(PER_MINUTE);
                self.journal.limit(mailbox, highest);
                self.operate("MAILRL.LIMITS", mailbox, &["PERMINUTE", &per_minute.to_string()])
                    .await?;
                self.journal.limit(mailbox, per_minute);
                sleep(length).await;
                self.journal.limit(mailbox, highest);
                self.operate("MAILRL.LIMITS", mailbox, &["RESET"]).await?;
                self.journal.limit(mailbox, PER_MINUTE);
            }
        }
        Ok(())
    }

    async fn misbehave(&self, how: Misbehaviour, length: Duration) -> Result<(), Failure> {
        self.graph.try_inject(how.share(SHARE))?;
        sleep(length).await;
        self.graph.clear_faults();
        Ok(())
    }

    /// A command of an operator, who tries again while Redis is away.
    async fn operate(&self, command: &str, mailbox: &str, words: &[&str]) -> Result<(), Failure> {
        let give_up = Instant::now() + OPERATOR_GIVES_UP_AFTER;
        let client = redis::Client::open(self.redis_url.as_str())?;
        loop {
            let done = async {
                let mut connection = client.get_multiplexed_async_connection().await?;
                redis::cmd(command)
                    .arg(format!("mailrl:{mailbox}"))
                    .arg(words)
                    .query_async::<redis::Value>(&mut connection)
                    .await
            };
            match done.await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= give_up => return Err(error.into()),
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// Ends the workers in good order, and reads what Redis has counted.
    pub async fn end(&self) -> Result<(), Failure> {
        self.crew.lock().await.end().await?;
        let redis = self.redis.lock().await;
        block_in_place(|| self.read_counters(&redis))
    }

    fn read_counters(&self, redis: &RedisServer) -> Result<(), Failure> {
        let info: String = redis::cmd("INFO").arg("mailrl").query(&mut redis.connection())?;
        let count = |name: &str| {
            let value = info.lines().find_map(|line| {
                line.strip_prefix("mailrl_")?
                    .strip_prefix(name)?
                    .strip_prefix(':')
            });
            value
                .and_then(|value| value.trim().parse().ok())
                .ok_or(format!("no {name} in INFO mailrl"))
        };
        self.journal.counted(count("allowed")?, count("released")?);
        Ok(())
    }

    /// Keeps the logs, those of Redis too, and says where.
    pub async fn keep(self) -> Result<std::path::PathBuf, Failure> {
        let redis = self.redis.into_inner();
        tokio::fs::write(self.folder.path().join("redis.log"), redis.log()).await?;
        Ok(self.folder.keep())
    }
}
