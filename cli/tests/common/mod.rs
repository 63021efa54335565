//! The command itself, against a real Redis with the module and a real simulator of Graph.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use graph_sim::{GraphSim, GraphSimBuilder, Limits};
use serde_json::Value;
use tempfile::TempDir;
use test_support::RedisServer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

pub const MAILBOX: &str = "news@example.com";
pub const KEY: &str = "mailrl:news@example.com";
pub const SECRET: &str = "hunter2-the-client-secret";

/// A Redis with the module, a Graph, and a folder of one's own to run the command in.
pub struct Setup {
    pub redis: RedisServer,
    pub graph: GraphSim,
    pub folder: TempDir,
}

impl Setup {
    /// Rolling windows with the usual limits; Graph itself takes any number of messages.
    pub async fn new() -> Self {
        Self::with(["window", "rolling"], sim()).await
    }

    pub async fn with<const N: usize>(module: [&str; N], graph: GraphSimBuilder) -> Self {
        Self {
            redis: RedisServer::with_module(module),
            graph: graph.start().await,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The command in this setup, `subcommand` being its first word.
    pub fn command(&self, subcommand: &str) -> Command {
        let mut command = bare_command(self.folder.path());
        command.arg(subcommand).env("MAILRL_REDIS", self.redis.url());
        if subcommand == "send" {
            self.show_graph(&mut command);
        }
        command
    }

    pub fn show_graph(&self, command: &mut Command) {
        command
            .env("MAILRL_TENANT", "tenant")
            .env("MAILRL_CLIENT_ID", "app")
            .env("MAILRL_CLIENT_SECRET", SECRET)
            .env("MAILRL_LOGIN_URL", self.graph.base_url())
            .env("MAILRL_GRAPH_URL", self.graph.base_url());
    }

    pub async fn send<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Run {
        run(self.command("send").args(arguments)).await
    }

    /// A file in the folder.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A mail from [`MAILBOX`] in the folder.
    pub fn mail(&self, name: &str) -> PathBuf {
        self.file(name, mail(name))
    }

    /// The subjects of what Graph accepted, in that order.
    pub fn arrived(&self) -> Vec<String> {
        self.graph
            .messages()
            .into_iter()
            .map(|message| message.subject)
            .collect()
    }
}

pub fn sim() -> GraphSimBuilder {
    let limits = Limits {
        messages: u64::MAX,
        ..Limits::default()
    };
    GraphSim::builder()
        .client("app", SECRET)
        .keep_raw(true)
        .limits(limits)
}

pub fn mail(subject: &str) -> String {
    format!("From: News <{MAILBOX}>\r\nTo: a@example.net\r\nSubject: {subject}\r\n\r\nHello.\r\n")
}

/// The command with nothing set but where it runs.
pub fn bare_command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mailrl"));
    command
        .env_clear()
        .env("HOME", folder)
        .env("TZ", "UTC")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How a run of the command ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Run {
    /// All that it wrote.
    pub fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The line on this file.
    pub fn line(&self, file: &str) -> String {
        let output = self.output();
        let has_file = |line: &&str| {
            line.split_once(": ")
                .is_some_and(|(name, _)| name.ends_with(file))
        };
        output
            .lines()
            .rfind(has_file)
            .unwrap_or_else(|| panic!("no line on {file} in {self:#?}"))
            .to_owned()
    }

    /// The objects that `--json` printed.
    pub fn json(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
            .collect()
    }

    #[track_caller]
    pub fn ends_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.output().contains(text), "not {text:?} in {self:#?}");
        self
    }
}

pub async fn run(command: &mut Command) -> Run {
    let start = Instant::now();
    let limit = Duration::from_mins(1);
    let output = tokio::time::timeout(limit, command.output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("it does not come to an end: {command:?}"))
        .unwrap();
    ended(output, start.elapsed())
}

pub async fn run_with_input(command: &mut Command, input: impl AsRef<[u8]>) -> Run {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_ref()).await.unwrap();
    drop(stdin);
    ended(child.wait_with_output().await.unwrap(), start.elapsed())
}

fn ended(output: Output, took: Duration) -> Run {
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        took,
    }
}

/// A run that is still going on.
pub struct Running {
    child: Child,
    stderr: BufReader<tokio::process::ChildStderr>,
    told: String,
    start: Instant,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stderr,
            told: String::new(),
            start: Instant::now(),
        }
    }

    /// Waits until stderr says this.
    pub async fn until_it_says(&mut self, text: &str) {
        let reading = async {
            loop {
                let mut line = String::new();
                let length = self.stderr.read_line(&mut line).await.unwrap();
                assert!(length > 0, "it ended without {text:?}: {}", self.told);
                self.told.push_str(&line);
                if line.contains(text) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reading)
            .await
            .unwrap_or_else(|_| panic!("it never said {text:?}"));
    }

    pub fn signal(&self, signal: libc::c_int) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        // SAFETY: kill(2) takes no pointers, and the process is a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    pub async fn end(mut self) -> Run {
        let mut stderr = self.told;
        let ending = async {
            self.stderr.read_to_string(&mut stderr).await.unwrap();
            self.child.wait_with_output().await.unwrap()
        };
        let output = tokio::time::timeout(Duration::from_mins(1), ending)
            .await
            .expect("it comes to an end");
        Run {
            stderr,
            ..ended(output, self.start.elapsed())
        }
    }
}

pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/mail")
}

/// An address on which nobody listens.
pub fn nobody(scheme: &str) -> String {
    format!("{scheme}://127.0.0.1:{}", test_support::free_port())
}

pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}
