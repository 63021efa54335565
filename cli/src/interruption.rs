//! Ctrl-C and SIGTERM: the first asks to come to an end, the second to do so at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What asked the command to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Knows which signals came.
#[derive(Clone)]
pub struct Interruption(watch::Receiver<Received>);

#[derive(Clone, Copy, Default)]
struct Received {
    first: Option<Signal>,
    count: u32,
}

impl Interruption {
    /// Listens from now on; needs a runtime.
    pub fn listen() -> io::Result<Self> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminates = signal(SignalKind::terminate())?;
        let (sender, receiver) = watch::channel(Received::default());
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupts.recv() => Signal::Interrupt,
                    _ = terminates.recv() => Signal::Terminate,
                };
                sender.send_modify(|received| {
                    received.first.get_or_insert(signal);
                    received.count += 1;
                });
            }
        });
        Ok(Self(receiver))
    }

    /// The first signal that came.
    pub fn signal(&self) -> Option<Signal> {
        self.0.borrow().first
    }

    /// Comes once the command is asked to end.
    pub async fn asked(&self) {
        self.came(1).await;
    }

    /// Comes once it is asked again.
    pub async fn asked_again(&self) {
        self.came(2).await;
    }

    async fn came(&self, times: u32) {
        let mut receiver = self.0.clone();
        if receiver
            .wait_for(|received| received.count >= times)
            .await
            .is_err()
        {
            // Nobody listens any more, so no signal will ever come.
            std::future::pending::<()>().await;
        }
    }
}
