//! An SMTP server that takes mail, or goes wrong at a given step.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does at a step.
#[derive(Clone, Copy)]
pub enum Fault {
    Answer(&'static str),
    Silence,
    HangUp,
}

pub struct SmtpServer {
    pub port: u16,
    lines: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl SmtpServer {
    pub async fn new() -> Self {
        Self::that_fails_at("no line begins so", Fault::Silence).await
    }

    /// Goes wrong when a line begins with this; `.` ends the content, and the greeting answers to an
    /// empty line.
    pub async fn that_fails_at(step: &'static str, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = lines.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, step, fault, seen.clone()));
            }
        });
        Self { port, lines, server }
    }

    /// All lines that were said to it.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// How many mails it was given to the end.
    pub fn mails(&self) -> usize {
        self.lines().iter().filter(|line| *line == ".").count()
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(stream: TcpStream, step: &str, fault: Fault, seen: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut in_content = false;
    let mut line = String::new();
    loop {
        let said = line.trim_end();
        // Within the content only its end is a step, and only the greeting answers to nothing.
        let is_step = match step {
            "" => said.is_empty() && !in_content,
            "." => said == ".",
            step => said.starts_with(step) && !in_content,
        };
        let answer = match said {
            _ if is_step => match fault {
                Fault::Answer(answer) => answer,
                Fault::Silence => std::future::pending().await,
                Fault::HangUp => return,
            },
            "." => "250 accepted",
            _ if in_content => "",
            "" => "220 ready",
            "DATA" => "354 go on",
            _ if said.starts_with("EHLO") => "250-here\r\n250 AUTH PLAIN",
            _ if said.starts_with("AUTH") => "235 welcome",
            _ => "250 fine",
        };
        in_content = answer.starts_with("354") || in_content && said != ".";
        if !answer.is_empty() {
            let _ = stream.write_all(format!("{answer}\r\n").as_bytes()).await;
        }
        line.clear();
        if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
            return;
        }
        seen.lock().unwrap().push(line.trim_end().to_owned());
    }
}
