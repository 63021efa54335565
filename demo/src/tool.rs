//! The command `mailrl`, as this demo configures it, and what it says.

use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::Failure;
use crate::args::Args;
use crate::mails::Mail;
use crate::stage::{CLIENT_ID, CLIENT_SECRET, Stage};

/// What a worker logs.
pub enum Said {
    Event(Entry),
    /// What is no event, kept for when it fails.
    Other(String),
}

#[derive(Deserialize)]
struct LogLine {
    fields: Entry,
}

/// An event of the log.
#[derive(Deserialize)]
pub struct Entry {
    pub event: String,
    pub message_id: Option<String>,
    pub scheduled_on: Option<i64>,
    pub error: Option<String>,
}

/// The command `mailrl`, as this demo configures it.
pub struct Tool {
    program: PathBuf,
    config: PathBuf,
}

impl Tool {
    pub fn new(args: &Args, stage: &Stage) -> Result<Self, Failure> {
        let config = stage.folder().join("mailrl.toml");
        std::fs::write(&config, configuration(stage))?;
        Ok(Self {
            program: args.mailrl.canonicalize()?,
            config,
        })
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MAILRL_") {
                command.env_remove(name);
            }
        }
        command
            .args([subcommand, "--config"])
            .arg(&self.config)
            .env("MAILRL_CLIENT_SECRET", CLIENT_SECRET)
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Puts these mails of this mailbox into the queue.
    pub async fn enqueue(&self, mailbox: &str, mails: &[Mail]) -> Result<(), Failure> {
        let mut command = self.command("enqueue");
        command
            .args(["--from", mailbox])
            .args(mails.iter().map(|mail| &mail.path));
        let output = command
            .output()
            .await
            .map_err(|error| self.cannot_start(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("the mails did not come into the queue:\n{said}").into())
    }

    /// Starts a worker, which is to be heard under this number.
    pub fn worker(
        &self,
        number: usize,
        said: &mpsc::UnboundedSender<(usize, Said)>,
    ) -> Result<Child, Failure> {
        let mut command = self.command("worker");
        command.args(["--log", "info", "--log-format", "json"]);
        let mut worker = command.spawn().map_err(|error| self.cannot_start(&error))?;
        if let (Some(stdout), Some(stderr)) = (worker.stdout.take(), worker.stderr.take()) {
            tokio::spawn(listen_to(stdout, number, said.clone()));
            tokio::spawn(listen_to(stderr, number, said.clone()));
        }
        Ok(worker)
    }

    fn cannot_start(&self, error: &std::io::Error) -> String {
        format!("{} cannot be started: {error}", self.program.display())
    }
}

fn configuration(stage: &Stage) -> String {
    let (redis, graph) = (stage.redis_url(), stage.graph.base_url());
    let store = stage.folder().join("mails");
    format!(
        "[redis]\nurl = \"{redis}\"\n\n\
         [graph]\ntenant = \"demo\"\nclient_id = \"{CLIENT_ID}\"\nlogin_url = \"{graph}\"\ngraph_url = \"{graph}\"\n\n\
         [store]\nurl = \"file://{}\"\n",
        store.display()
    )
}

/// Asks a worker to finish what is under way, and waits until it has.
pub async fn end(mut worker: Child) -> Result<(), Failure> {
    if let Some(pid) = worker.id().and_then(|pid| i32::try_from(pid).ok()) {
        kill(Pid::from_raw(pid), Signal::SIGTERM)?;
    }
    worker.wait().await?;
    Ok(())
}

/// Passes on what a worker logs, line by line, until it logs no more or nobody listens.
async fn listen_to(
    output: impl AsyncRead + Unpin,
    worker: usize,
    said: mpsc::UnboundedSender<(usize, Said)>,
) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let understood = match serde_json::from_str::<LogLine>(&line) {
            Ok(LogLine { fields }) => Said::Event(fields),
            Err(_) => Said::Other(line),
        };
        if said.send((worker, understood)).is_err() {
            return;
        }
    }
}
