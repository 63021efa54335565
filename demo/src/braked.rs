//! With the brake: two `mailrl send` processes that know nothing of each other.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::Failure;
use crate::args::Args;
use crate::mails::Mail;
use crate::progress::Progress;
use crate::stage::{CLIENT_ID, CLIENT_SECRET, Stage};

/// The mailbox that all mails go out of.
pub const MAILBOX: &str = "campagne@example.com";

/// How it went.
#[derive(Debug, Default)]
pub struct Braked {
    pub sent: u64,
    pub not_sent: u64,
    /// How often a mail had to wait.
    pub waits: u64,
    /// How many went out since Redis gave no decision.
    pub unbraked: u64,
    /// Reservations that Redis gave and did not give.
    pub allowed: u64,
    pub denied: u64,
    pub took: Duration,
}

/// What one of the two says.
enum Said {
    Result(FileResult),
    /// It has to wait for so long.
    Denied(Duration),
    /// What is neither, kept for when it fails.
    Other(String),
}

/// What `mailrl send --json` prints for each file.
#[derive(Deserialize)]
struct FileResult {
    result: String,
    fail_open: Option<String>,
    error: Option<String>,
    waits: u64,
}

pub async fn send(args: &Args, stage: &Stage, mails: &[Mail]) -> Result<Braked, Failure> {
    // An empty file keeps the user's own configuration out of it.
    let config = stage.folder().join("mailrl.toml");
    std::fs::write(&config, "")?;
    let halves = mails.split_at(mails.len().div_ceil(2));
    let halves = [halves.0, halves.1];
    let start = Instant::now();
    let (said, mut listen) = mpsc::unbounded_channel();
    let mut senders = Vec::new();
    for (number, half) in halves.into_iter().enumerate() {
        let mut sender = spawn(args, stage, &config, half)?;
        if let (Some(stdout), Some(stderr)) = (sender.stdout.take(), sender.stderr.take()) {
            tokio::spawn(listen_to(stdout, number, said.clone()));
            tokio::spawn(listen_to(stderr, number, said.clone()));
        }
        senders.push(sender);
    }
    drop(said);
    let mut progress = Progress::new(halves.map(<[Mail]>::len));
    let mut braked = Braked::default();
    let mut others = Vec::new();
    loop {
        let said = tokio::select! {
            said = listen.recv() => said,
            () = progress.tick() => continue,
        };
        let Some((sender, said)) = said else {
            break;
        };
        match said {
            Said::Result(result) => {
                progress.done(sender, result.result == "sent");
                braked.count(&result);
                others.extend(result.error);
            }
            Said::Denied(wait) => progress.waits(sender, wait),
            Said::Other(line) => others.push(line),
        }
    }
    for mut sender in senders {
        sender.wait().await?;
    }
    progress.end();
    braked.took = start.elapsed();
    let told = braked.sent + braked.not_sent;
    if told < mails.len() as u64 {
        let others = others.join("\n");
        return Err(format!("mailrl told of {told} mails only:\n{others}").into());
    }
    braked.allowed = stage.counted("allowed").await?;
    braked.denied = stage.counted("denied_").await?;
    Ok(braked)
}

impl Braked {
    fn count(&mut self, result: &FileResult) {
        if result.result == "sent" {
            self.sent += 1;
        } else {
            self.not_sent += 1;
        }
        self.waits += result.waits;
        self.unbraked += u64::from(result.fail_open.is_some());
    }
}

fn spawn(args: &Args, stage: &Stage, config: &Path, mails: &[Mail]) -> Result<Child, Failure> {
    let mut command = Command::new(args.mailrl.canonicalize()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MAILRL_") {
            command.env_remove(name);
        }
    }
    let graph = stage.graph.base_url();
    command
        .args(["send", "--wait", "--json", "--from", MAILBOX, "--config"])
        .arg(config)
        .args(["--log", "info", "--log-format", "json", "--tenant", "demo"])
        .args([
            "--client-id",
            CLIENT_ID,
            "--login-url",
            &graph,
            "--graph-url",
            &graph,
        ])
        .args(mails.iter().map(|mail| &mail.path))
        .env("MAILRL_REDIS", stage.redis_url())
        .env("MAILRL_CLIENT_SECRET", CLIENT_SECRET)
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = command.spawn();
    child.map_err(|error| format!("{} cannot be started: {error}", args.mailrl.display()).into())
}

/// Passes on what a process says, line by line, until it says no more or nobody listens.
async fn listen_to(
    output: impl AsyncRead + Unpin,
    sender: usize,
    said: mpsc::UnboundedSender<(usize, Said)>,
) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if said.send((sender, understand(line))).is_err() {
            return;
        }
    }
}

fn understand(line: String) -> Said {
    #[derive(Deserialize)]
    struct LogLine {
        fields: Denied,
    }
    #[derive(Deserialize)]
    struct Denied {
        event: String,
        retry_after_ms: u64,
    }
    if let Ok(result) = serde_json::from_str(&line) {
        return Said::Result(result);
    }
    match serde_json::from_str::<LogLine>(&line) {
        Ok(LogLine { fields }) if fields.event == mailrl_client::events::DENIED => {
            Said::Denied(Duration::from_millis(fields.retry_after_ms))
        }
        _ => Said::Other(line),
    }
}
