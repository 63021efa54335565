//! The network between a client and Redis, which a test makes fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What is wrong with the network, for connections there are and for new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Everything takes so much longer, each way.
    Delay(Duration),
    /// What is sent is lost, and so is the connection that it was sent on: a firewall that has
    /// forgotten it. Nobody is told.
    BlackHole,
    /// So many bytes of each reply arrive, then its connection is gone.
    CutReplies {
        after: usize,
    },
    /// As [`Self::CutReplies`], for one reply; then the network is whole again.
    CutOneReply {
        after: usize,
    },
    /// The client hears that no more replies come; its requests still arrive.
    HalfClose,
    /// Nothing moves; all of it arrives once the fault is over.
    Freeze,
}

/// A TCP proxy that forwards as well as its fault lets it; it ends with the test's runtime.
pub struct FaultyNetwork {
    port: u16,
    fault: watch::Sender<Fault>,
    accepted: Arc<Mutex<Vec<Instant>>>,
    accepting: JoinHandle<()>,
}

impl FaultyNetwork {
    /// In front of the server on this port.
    pub async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let fault = watch::Sender::new(Fault::None);
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let accepting = tokio::spawn({
            let (fault, accepted) = (fault.clone(), Arc::clone(&accepted));
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    accepted.lock().unwrap().push(Instant::now());
                    tokio::spawn(connect(client, server, fault.clone()));
                }
            }
        });
        Self {
            port,
            fault,
            accepted,
            accepting,
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// When each connection was taken.
    pub fn connections(&self) -> Vec<Instant> {
        self.accepted.lock().unwrap().clone()
    }
}

impl Drop for FaultyNetwork {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(client: TcpStream, server: u16, network: watch::Sender<Fault>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let forgotten = Arc::new(AtomicBool::new(false));
    let requests = Way {
        from: from_client,
        to: to_server,
        fault: network.subscribe(),
        network: network.clone(),
        forgotten: Arc::clone(&forgotten),
    };
    let replies = Way {
        from: from_server,
        to: to_client,
        fault: network.subscribe(),
        network,
        forgotten,
    };
    // Whichever ends first takes the whole connection with it.
    tokio::select! {
        () = requests.forward_requests() => {}
        () = replies.forward_replies() => {}
    }
}

/// One direction of a connection.
struct Way {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    network: watch::Sender<Fault>,
    fault: watch::Receiver<Fault>,
    /// Whatever was lost on it stays lost, and all that follows.
    forgotten: Arc<AtomicBool>,
}

impl Way {
    async fn forward_requests(mut self) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = self.from.read(&mut buffer).await {
            self.pass(&buffer[..length]).await;
        }
    }

    async fn forward_replies(mut self) {
        let mut buffer = [0; 4096];
        loop {
            let length = tokio::select! {
                read = self.from.read(&mut buffer) => match read {
                    Ok(length @ 1..) => length,
                    _ => return,
                },
                () = become_half_closed(&mut self.fault) => {
                    let _ = self.to.shutdown().await;
                    return std::future::pending().await;
                }
            };
            let fault = self.now();
            if let Fault::CutReplies { after } | Fault::CutOneReply { after } = fault {
                if fault == (Fault::CutOneReply { after }) {
                    self.network.send_replace(Fault::None);
                }
                let _ = self.to.write_all(&buffer[..length.min(after)]).await;
                return;
            }
            self.pass(&buffer[..length]).await;
        }
    }

    async fn pass(&mut self, bytes: &[u8]) {
        match self.now() {
            Fault::Delay(delay) => tokio::time::sleep(delay).await,
            Fault::BlackHole => self.forgotten.store(true, Ordering::SeqCst),
            Fault::Freeze => {
                let _ = self.fault.wait_for(|fault| *fault != Fault::Freeze).await;
            }
            _ => {}
        }
        if !self.forgotten.load(Ordering::SeqCst) {
            let _ = self.to.write_all(bytes).await;
        }
    }

    fn now(&self) -> Fault {
        *self.fault.borrow()
    }
}

async fn become_half_closed(fault: &mut watch::Receiver<Fault>) {
    let _ = fault.wait_for(|fault| *fault == Fault::HalfClose).await;
}
