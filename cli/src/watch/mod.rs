//! `mailrl watch`: all mailboxes on the terminal.
//!
//! | file | subject |
//! | --- | --- |
//! | `state` | what is shown, and what keys do to it; pure |
//! | `history` | what was seen of a mailbox in the last minutes |
//! | `line` | a line that is typed |
//! | `wish` | a change that is asked for and made |
//! | `draw`, `detail` | the picture: the list; the chosen mailbox and the help |
//! | `look` | looks at Redis in the background, and makes the changes |

mod detail;
mod draw;
mod history;
mod line;
mod look;
mod state;
#[cfg(test)]
mod tests;
mod wish;

use std::io::{self, IsTerminal};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::interruption::Interruption;
use crate::overview::Poller;
use crate::server::Server;
use crate::terminal::Terminal;
use look::News;
use state::{Outcome, State};

/// Watches until somebody quits.
pub async fn run(args: &args::Watch, config: Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    if !io::stdout().is_terminal() {
        terminal.err("mailrl: watch draws on a terminal, and standard output is none; for programs there is mailrl status --json");
        return Ok(Exit::Usage);
    }
    let poller = Poller::new(&config, &args.records)?;
    // What is wrong with the address is told before anything is drawn.
    let server = Server::connect(&config).await?;
    let interruption = Interruption::listen().map_err(ConfigError::Signals)?;
    let (wishes, granted) = mpsc::channel(1);
    let (tell, news) = mpsc::channel(1);
    tokio::spawn(look::look(config, server, poller, granted, tell));
    let watched = match ratatui::try_init() {
        Ok(screen) => watch(screen, keys(), news, wishes, &interruption).await,
        Err(error) => Err(error),
    };
    ratatui::restore();
    Ok(match (watched, interruption.signal()) {
        (Err(error), _) => {
            terminal.err(&format!("mailrl: the terminal: {error}"));
            Exit::Failed
        }
        (Ok(()), Some(signal)) => Exit::Interrupted(signal),
        (Ok(()), None) => Exit::Done,
    })
}

/// What is typed. The thread ends with the process: a read from a terminal cannot be called off.
fn keys() -> mpsc::Receiver<io::Result<Event>> {
    let (tell, events) = mpsc::channel(16);
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            let is_over = event.is_err();
            if tell.blocking_send(event).is_err() || is_over {
                return;
            }
        }
    });
    events
}

async fn watch(
    mut screen: DefaultTerminal,
    mut events: mpsc::Receiver<io::Result<Event>>,
    mut news: mpsc::Receiver<News>,
    wishes: mpsc::Sender<wish::Wish>,
    interruption: &Interruption,
) -> io::Result<()> {
    let mut state = State::default();
    loop {
        screen.draw(|frame| draw::draw(frame, &state))?;
        tokio::select! {
            event = events.recv() => match event {
                Some(Ok(Event::Key(key))) => match state.key(key) {
                    Outcome::Nothing => {}
                    Outcome::Quit => return Ok(()),
                    Outcome::Do(wish) => {
                        if wishes.try_send(wish).is_err() {
                            state.done(Err("the change before is still under way; nothing was changed".into()));
                        }
                    }
                },
                // Another size, and whatever else makes a new picture.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            told = news.recv() => match told {
                Some(News::Saw(seen)) => state.saw(seen),
                Some(News::Done(done)) => state.done(done),
                None => return Err(io::Error::other("what looks at Redis has ended")),
            },
            () = interruption.asked() => return Ok(()),
        }
    }
}
