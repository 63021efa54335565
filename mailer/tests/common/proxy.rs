//! A way to a server that can be turned and silenced, as networks do to connections.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards connections to a server on this machine.
pub struct Proxy {
    port: u16,
    target: Arc<watch::Sender<u16>>,
    silenced: watch::Sender<u64>,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            target: Arc::new(watch::Sender::new(port)),
            silenced: watch::Sender::new(0),
        };
        let (target, silenced) = (Arc::clone(&proxy.target), proxy.silenced.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let port = *target.borrow();
                tokio::spawn(forward(client, port, silenced.subscribe()));
            }
        });
        proxy
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Leads all connections to come to another server; those that there are stay where they are.
    pub fn turn_to(&self, port: u16) {
        self.target.send_replace(port);
    }

    /// Lets nothing more through on the connections that there are, without closing them.
    pub fn silence(&self) {
        self.silenced.send_modify(|times| *times += 1);
    }
}

async fn forward(mut client: TcpStream, port: u16, mut silenced: watch::Receiver<u64>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = silenced.changed() => std::future::pending().await,
    }
}
