//! `mailrl status`: what mailboxes have used, and when room comes.
//!
//! | file | subject |
//! | --- | --- |
//! | `reply` | the reply of `MAILRL.STATUS` |
//! | `show` | a status for people |

mod reply;
mod show;

use mailrl_client::Mailbox;

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::server::{Command, Server, json};
use crate::terminal::Terminal;
pub use reply::{Status, Window};
pub use show::filled;

/// Shows each mailbox, or why it cannot be shown.
pub async fn run(args: &args::Status, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let server = Server::connect(config).await?;
    let mut exit = Exit::Done;
    for name in &args.mailboxes {
        let mailbox = Mailbox::new(name);
        let status = match &server {
            Ok(server) => {
                server
                    .ask(Command::Status, mailbox.key(), &[], Status::read)
                    .await
            }
            Err(trouble) => Err(trouble.clone()),
        };
        if status.is_err() {
            exit = Exit::Failed;
        }
        if args.json {
            let _ = terminal.out(&json(&mailbox, &status));
        } else {
            match status {
                Ok(status) => {
                    let _ = terminal.out(&show::lines(&mailbox, &status).join("\n"));
                }
                Err(trouble) => terminal.err(&format!("{mailbox}: {}", trouble.advice())),
            }
        }
        if server.is_err() && !args.json {
            break;
        }
    }
    Ok(exit)
}
