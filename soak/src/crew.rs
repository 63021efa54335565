//! The `mailrl worker` processes, and what they log.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;

use crate::Failure;
use crate::journal::{Event, Journal};
use crate::mailboxes::PER_MINUTE;

pub const WORKERS: usize = 3;

const AT_ONCE: &str = "8";

/// What is under way when a worker is asked to end has ended by then.
const GRACE: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct LogLine {
    fields: Event,
}

struct Worker {
    child: Child,
    listening: JoinHandle<()>,
}

/// The workers; one that was killed is missing until it is started again.
pub struct Crew {
    program: PathBuf,
    folder: PathBuf,
    journal: Journal,
    workers: Vec<Option<Worker>>,
}

impl Crew {
    pub async fn start(
        program: &Path,
        folder: &Path,
        redis: &str,
        graph: &str,
        journal: &Journal,
    ) -> Result<Self, Failure> {
        tokio::fs::write(folder.join("mailrl.toml"), configuration(folder, redis, graph)).await?;
        let mut crew = Self {
            program: program
                .canonicalize()
                .map_err(|error| format!("{}: {error} (--mailrl names it)", program.display()))?,
            folder: folder.to_owned(),
            journal: journal.clone(),
            workers: Vec::new(),
        };
        for number in 0..WORKERS {
            let worker = crew.spawn(number).await?;
            crew.workers.push(Some(worker));
        }
        Ok(crew)
    }

    async fn spawn(&self, number: usize) -> Result<Worker, Failure> {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MAILRL_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["worker", "--config"])
            .arg(self.folder.join("mailrl.toml"))
            .args(["--concurrency", AT_ONCE, "--log", "info", "--log-format", "json"])
            .env("MAILRL_CLIENT_SECRET", "not-a-secret")
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("worker-{number}.log")))
            .await?;
        let stderr = child.stderr.take().ok_or("a worker without stderr")?;
        let listening = tokio::spawn(listen(stderr, log, self.journal.clone()));
        Ok(Worker { child, listening })
    }

    /// Kills a worker as a crash would, and answers which.
    pub async fn kill(&mut self, draw: usize) -> Result<usize, Failure> {
        let number = draw % WORKERS;
        let mut worker = self.workers[number]
            .take()
            .ok_or("a worker that is killed twice")?;
        if let Some(status) = worker.child.try_wait()? {
            return Err(format!("worker {number} had ended by itself: {status}").into());
        }
        worker.child.kill().await?;
        self.journal.worker_killed();
        worker.listening.await?;
        Ok(number)
    }

    pub async fn restart(&mut self, number: usize) -> Result<(), Failure> {
        self.workers[number] = Some(self.spawn(number).await?);
        Ok(())
    }

    /// Ends all workers in good order, and hears them out.
    pub async fn end(&mut self) -> Result<(), Failure> {
        for worker in self.workers.iter().flatten() {
            let pid = worker.child.id().ok_or("a worker had ended by itself")?;
            kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
        }
        for mut worker in self.workers.drain(..).flatten() {
            tokio::time::timeout(GRACE, worker.child.wait())
                .await
                .map_err(|_| "a worker does not end")??;
            worker.listening.await?;
        }
        Ok(())
    }
}

/// Keeps what a worker logs, and tells its events.
async fn listen(stderr: ChildStderr, mut log: File, journal: Journal) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(LogLine { fields }) = serde_json::from_str(&line) {
            journal.heard(&fields);
        }
        // The log is for people who look into a failure; the run does not hang on it.
        let _ = log.write_all(format!("{line}\n").as_bytes()).await;
    }
}

fn configuration(folder: &Path, redis: &str, graph: &str) -> String {
    let store = folder.join("mails");
    format!(
        "[redis]\nurl = \"{redis}\"\n\n\
         [graph]\ntenant = \"soak\"\nclient_id = \"soak\"\nlogin_url = \"{graph}\"\ngraph_url = \"{graph}\"\ntimeout_s = 2\n\n\
         [sendgrid]\ntimeout_s = 2\n\n\
         [limits]\nrate_limit_per_minute = {PER_MINUTE}\nrate_limit_recipients_per_day = {}\n\n\
         [queue]\nretries = 3\nretry_pause_s = 1\n\n\
         [store]\nurl = \"file://{}\"\n",
        u32::MAX,
        store.display()
    )
}
