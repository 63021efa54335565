//! A program that is not Redis, on the port where Redis is expected.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What a web server says to somebody who does not speak its protocol.
pub const HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

/// Takes connections and answers whatever it is sent with the same bytes; it ends with its runtime.
pub struct OtherProgram {
    accepting: JoinHandle<()>,
}

impl OtherProgram {
    pub async fn start(port: u16, answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let accepting = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {
                        let _ = stream.write_all(answer).await;
                    }
                });
            }
        });
        Self { accepting }
    }

    /// Ends it, so that its port is free for another.
    pub async fn stop(self) {
        self.accepting.abort();
        let _ = self.accepting.await;
    }
}
