//! `mailrl pause` and `mailrl resume`: nobody sends from a mailbox for a while, or may again.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use mailrl_client::Mailbox;

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::server::reply::number;
use crate::server::{Command, Server, Trouble};
use crate::status::Status;
use crate::terminal::Terminal;
use crate::words::{after, clock, spoken};

/// Pauses a mailbox, and says until when.
pub async fn pause(args: &args::Pause, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let mailbox = Mailbox::new(&args.mailbox);
    let server = Server::connect(config).await?;
    let paused = match &server {
        Ok(server) => pause_on(server, mailbox.key().as_bytes(), args.duration).await,
        Err(trouble) => Err(trouble.clone()),
    };
    Ok(match paused {
        Ok(paused) => {
            let _ = terminal.out(&format!("{mailbox}: {paused}"));
            Exit::Done
        }
        Err(trouble) => {
            terminal.err(&format!("{mailbox}: {}", trouble.advice()));
            Exit::Failed
        }
    })
}

/// How long a mailbox is paused for now.
pub struct Paused {
    left: Duration,
    longer_before: bool,
}

impl fmt::Display for Paused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.left;
        write!(
            formatter,
            "paused until {} (in {})",
            clock(after(left)),
            spoken(left)
        )?;
        if self.longer_before {
            formatter.write_str(", a longer pause was there already")?;
        }
        Ok(())
    }
}

/// Pauses the mailbox of this key.
pub async fn pause_on(server: &Server, key: &[u8], length: Duration) -> Result<Paused, Trouble> {
    let ms = milliseconds(length);
    let until = server.ask(Command::Pause, key, &[ms.to_string()], number).await?;
    let answer = server.ask(Command::Status, key, &[], Status::read).await;
    let (left_ms, longer_before) = match answer {
        Ok(status) => (status.paused_for_ms, status.paused_for_ms > ms),
        // Who may pause may not be allowed to look. The end is a time on Redis's clock, so nothing is
        // said of what was there before.
        Err(_) => (until.saturating_sub(now_ms()), false),
    };
    Ok(Paused {
        left: Duration::from_millis(left_ms),
        longer_before,
    })
}

fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// Ends the pauses of mailboxes.
pub async fn resume(args: &args::Resume, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let server = Server::connect(config).await?;
    let mut exit = Exit::Done;
    for name in &args.mailboxes {
        let mailbox = Mailbox::new(name);
        let resumed = match &server {
            Ok(server) => resume_on(server, mailbox.key().as_bytes()).await,
            Err(trouble) => Err(trouble.clone()),
        };
        match resumed {
            Ok(()) => {
                let _ = terminal.out(&format!("{mailbox}: not paused any more"));
            }
            Err(trouble) => {
                terminal.err(&format!("{mailbox}: {}", trouble.advice()));
                exit = Exit::Failed;
            }
        }
        if server.is_err() {
            break;
        }
    }
    Ok(exit)
}

/// Ends the pause of the mailbox of this key.
pub async fn resume_on(server: &Server, key: &[u8]) -> Result<(), Trouble> {
    server
        .ask(Command::Pause, key, &["0".into()], number)
        .await
        .map(drop)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
