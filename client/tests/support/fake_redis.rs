//! A server that speaks just enough of Redis's protocol to say what a test wants it to say.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does about one command.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Sends these bytes.
    Bytes(String),
    /// Sends these bytes, and closes the connection.
    BytesThenClose(String),
    /// Sends these bytes after a while; the commands behind it wait.
    After(Duration, String),
    /// Says nothing on this connection ever again.
    Silence,
}

/// One line: an error, an integer, a status.
pub fn line(text: &str) -> Reply {
    Reply::Bytes(format!("{text}\r\n"))
}

/// The six parts of a RESERVE that is allowed.
pub fn allowed(id: &str) -> String {
    six(1, "ok", 0, id)
}

/// The six parts of one that is denied.
pub fn denied(reason: &str, retry_after_ms: u64) -> String {
    six(0, reason, retry_after_ms, "")
}

fn six(allowed: u8, reason: &str, retry_after_ms: u64, id: &str) -> String {
    format!(
        "*6\r\n:{allowed}\r\n${}\r\n{reason}\r\n:{retry_after_ms}\r\n:24\r\n:8999\r\n${}\r\n{id}\r\n",
        reason.len(),
        id.len()
    )
}

type Script = dyn Fn(&str) -> Reply + Send + Sync;

/// The server; it ends with the test's runtime.
pub struct FakeRedis {
    port: u16,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: Mutex<Vec<Instant>>,
    commands: Mutex<Vec<String>>,
}

impl FakeRedis {
    /// Answers each command, given as its words joined by spaces, as the script says. `CLIENT`, with
    /// which a connection introduces itself, is always welcome.
    pub async fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with_greeting(|| line("+OK"), script).await
    }

    /// Allows every RESERVE under one id, and answers all else in the same way.
    pub async fn allowing(id: &'static str, settling: Reply) -> Self {
        Self::start(move |command| {
            if command.starts_with("MAILRL.RESERVE") {
                Reply::Bytes(allowed(id))
            } else {
                settling.clone()
            }
        })
        .await
    }

    /// As [`Self::start`], with a say in how introductions are answered.
    pub async fn start_with_greeting(
        greeting: impl Fn() -> Reply + Send + Sync + 'static,
        script: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let script: Arc<Script> = Arc::new(move |command: &str| {
            if command.starts_with("CLIENT ") {
                greeting()
            } else {
                script(command)
            }
        });
        let accepting = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    seen.connections.lock().unwrap().push(Instant::now());
                    tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen)));
                }
            }
        });
        Self {
            port,
            seen,
            accepting,
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// All commands so far, introductions left out.
    pub fn commands(&self) -> Vec<String> {
        self.seen.commands.lock().unwrap().clone()
    }

    /// The names of all commands so far, without `MAILRL.`.
    pub fn names(&self) -> Vec<String> {
        let name = |command: String| {
            let name = command.split(' ').next().unwrap_or_default();
            name.trim_start_matches("MAILRL.").to_owned()
        };
        self.commands().into_iter().map(name).collect()
    }

    /// When each connection was taken.
    pub fn connections(&self) -> Vec<Instant> {
        self.seen.connections.lock().unwrap().clone()
    }
}

impl Drop for FakeRedis {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, seen: Arc<Seen>) {
    let mut buffer = Vec::new();
    loop {
        while let Some((words, length)) = parse_command(&buffer) {
            buffer.drain(..length);
            let command = words.join(" ");
            if !command.starts_with("CLIENT ") {
                seen.commands.lock().unwrap().push(command.clone());
            }
            match script(&command) {
                Reply::Bytes(bytes) => {
                    let _ = stream.write_all(bytes.as_bytes()).await;
                }
                Reply::BytesThenClose(bytes) => {
                    let _ = stream.write_all(bytes.as_bytes()).await;
                    return;
                }
                Reply::After(wait, bytes) => {
                    tokio::time::sleep(wait).await;
                    let _ = stream.write_all(bytes.as_bytes()).await;
                }
                Reply::Silence => {
                    while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
                    return;
                }
            }
        }
        if !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

/// The words of the first whole command in the buffer, and how long it is.
fn parse_command(buffer: &[u8]) -> Option<(Vec<String>, usize)> {
    let mut position = 0;
    let number = |prefix: u8, position: &mut usize| -> Option<usize> {
        let rest = &buffer[*position..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        assert_eq!(rest[0], prefix, "a command of Redis's protocol");
        *position += end + 2;
        Some(str::from_utf8(&rest[1..end]).unwrap().parse().unwrap())
    };
    let count = number(b'*', &mut position)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(b'$', &mut position)?;
        let word = buffer.get(position..position + length)?;
        words.push(String::from_utf8_lossy(word).into_owned());
        position += length + 2;
    }
    (position <= buffer.len()).then_some((words, position))
}
