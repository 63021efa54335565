//! A mailer against the simulator, and servers that do what no simulator would.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

pub mod proxy;
pub mod queue;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graph_sim::{GraphSim, GraphSimBuilder, Limits};
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::{MailOutcome, SendFailure};
use mailrl_mailer::graph::MicrosoftGraphMailerBuilder;
use mailrl_mailer::{GraphAccepted, GraphError, MicrosoftGraphMailer, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const MAILBOX: &str = "news@example.com";
pub const SECRET: &str = "hunter2-the-secret";

pub fn sim() -> GraphSimBuilder {
    let limits = Limits {
        messages: u64::MAX,
        concurrent: u64::MAX,
        ..Limits::default()
    };
    GraphSim::builder()
        .client("app", SECRET)
        .keep_raw(true)
        .limits(limits)
}

pub fn builder(login_url: &str, graph_url: &str) -> MicrosoftGraphMailerBuilder {
    MicrosoftGraphMailer::builder("tenant", "app", Secret::new(SECRET))
        .login_url(login_url)
        .graph_url(graph_url)
        .no_proxy()
}

pub fn mailer(sim: &GraphSim) -> MicrosoftGraphMailer {
    builder(&sim.base_url(), &sim.base_url()).build().unwrap()
}

pub fn envelope(recipients: &[&str]) -> Envelope {
    let recipients = recipients.iter().map(|one| one.parse().unwrap()).collect();
    Envelope::new(Some(MAILBOX.parse().unwrap()), recipients).unwrap()
}

pub fn mail(subject: &str) -> Vec<u8> {
    format!("From: {MAILBOX}\r\nTo: a@example.net\r\nSubject: {subject}\r\n\r\nHello.\r\n").into_bytes()
}

pub async fn send(mailer: &MicrosoftGraphMailer) -> Result<GraphAccepted, GraphError> {
    mailer
        .send_raw(&envelope(&["a@example.net"]), &mail("Hello"))
        .await
}

/// What became of a mail that must not have been accepted.
pub async fn outcome(mailer: &MicrosoftGraphMailer) -> MailOutcome {
    send(mailer).await.unwrap_err().mail_outcome()
}

pub fn sample(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/mail")
            .join(name),
    )
    .unwrap()
}

/// A server that takes connections into its backlog and never answers.
pub struct Frozen(std::net::TcpListener);

impl Frozen {
    pub fn new() -> Self {
        Self(std::net::TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.0.local_addr().unwrap())
    }
}

/// The address of a port on which nobody listens.
pub fn nobody() -> String {
    Frozen::new().url("http")
}

/// A server that answers every request with the same bytes and hangs up.
pub struct Canned {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    server: tokio::task::JoinHandle<()>,
}

impl Canned {
    pub async fn new(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self {
            url,
            requests,
            server,
        }
    }

    pub async fn json(body: &str) -> Self {
        let length = body.len();
        Self::new(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
        .await
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lengths = head.lines().filter_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length:")
                    .map(str::to_owned)
            });
            let length: usize = lengths
                .map(|length| length.trim().parse().unwrap())
                .next()
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return text;
        }
    }
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
