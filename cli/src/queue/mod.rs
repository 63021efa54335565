//! `mailrl queue`: what waits, and what people decide about it.
//!
//! | file | subject |
//! | --- | --- |
//! | `show` | messages, for people and as JSON |

mod show;

use std::time::Duration;

use futures_util::{StreamExt, TryFutureExt};
use jiff::Timestamp;
use mailrl_client::Mailbox;
use mailrl_mailer::queue::{DecideError, Decision, Filter, QueueError, Refusal, SendQueue};
use mailrl_mailer::{MessageId, MessageState};

use crate::args::{self, QueueCommand};
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::words::{clock, spoken};

/// Lists, shows or decides, whatever is asked for.
pub async fn run(args: args::Queue, config: &Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let place = match &args.command {
        None => &args.list.place,
        Some(QueueCommand::Show(show)) => &show.place,
        Some(QueueCommand::Send(ids) | QueueCommand::Sent(ids) | QueueCommand::Drop(ids)) => &ids.place,
    };
    let options = config.queue(place)?;
    let done = SendQueue::connect(&options).and_then(|queue| async move {
        match &args.command {
            None => list(&queue, &args.list, terminal).await,
            Some(QueueCommand::Show(args)) => show_one(&queue, args, terminal).await,
            Some(QueueCommand::Send(args)) => Ok(decide(&queue, Decision::Send, &args.ids, terminal).await),
            Some(QueueCommand::Sent(args)) => Ok(decide(&queue, Decision::Sent, &args.ids, terminal).await),
            Some(QueueCommand::Drop(args)) => Ok(decide(&queue, Decision::Drop, &args.ids, terminal).await),
        }
    });
    Ok(done.await.unwrap_or_else(|error| {
        terminal.err(&format!("mailrl: {error}"));
        Exit::Failed
    }))
}

async fn list(queue: &SendQueue, args: &args::List, terminal: &Terminal) -> Result<Exit, QueueError> {
    let filter = Filter {
        states: args.states.iter().map(|&state| state.into()).collect(),
        mailbox: args.mailbox.as_deref().map(Mailbox::new),
    };
    let mut found = std::pin::pin!(queue.list(&filter));
    let mut table = show::Table::new();
    let mut exit = Exit::Done;
    let mut shown = 0;
    while let Some(entry) = found.next().await {
        match entry {
            Ok(_) if shown == args.limit => {
                terminal.err(&format!(
                    "mailrl: there are more than {shown}: --limit shows more"
                ));
                break;
            }
            Ok(entry) => {
                shown += 1;
                if !args.json {
                    table.add(&entry);
                } else if terminal.out(&show::json(&entry, false)).is_err() {
                    break;
                }
            }
            Err(error @ QueueError::Records(mailrl_mailer::queue::RecordsError::Foreign { .. })) => {
                terminal.err(&format!("mailrl: {error}"));
                exit = Exit::Failed;
            }
            Err(error) => return Err(error),
        }
    }
    if !args.json {
        let text = if shown == 0 {
            "no messages".into()
        } else {
            table.to_string()
        };
        let _ = terminal.out(&text);
    }
    Ok(exit)
}

async fn show_one(queue: &SendQueue, args: &args::Show, terminal: &Terminal) -> Result<Exit, QueueError> {
    let Some(entry) = queue.show(&args.id).await? else {
        terminal.err(&format!("{}: {}", args.id, DecideError::NoMessage));
        return Ok(Exit::Failed);
    };
    let text = if args.json {
        show::json(&entry, true)
    } else {
        show::lines(&entry).join("\n")
    };
    let _ = terminal.out(&text);
    Ok(Exit::Done)
}

async fn decide(queue: &SendQueue, decision: Decision, ids: &[MessageId], terminal: &Terminal) -> Exit {
    let by = who();
    let mut exit = Exit::Done;
    for id in ids {
        match queue.decide(id, decision, &by).await {
            Ok(decided) => {
                let what = match decision {
                    Decision::Send => "will be sent now",
                    Decision::Sent => "was sent, and stays so",
                    Decision::Drop => "will not be sent",
                };
                let _ = terminal.out(&format!("{id}: {what} (it was {})", decided.before));
            }
            Err(error) => {
                terminal.err(&format!("{id}: {}", advice(&error, decision)));
                exit = Exit::Failed;
            }
        }
    }
    exit
}

fn advice(error: &DecideError, decision: Decision) -> String {
    let asked = match decision {
        Decision::Send => "sent",
        Decision::Sent => "settled as sent",
        Decision::Drop => "dropped",
    };
    match error {
        DecideError::Refused(Refusal::Held { until }) => format!(
            "a worker is sending it right now: look again at {}",
            show::moment(*until)
        ),
        DecideError::Refused(Refusal::State(MessageState::Sent)) => {
            format!("it was sent, so it cannot be {asked}")
        }
        DecideError::Refused(Refusal::State(state)) => {
            format!("it is {state}, and as such cannot be {asked}")
        }
        error => error.to_string(),
    }
}

/// Who decides, as it stands in a message's history.
fn who() -> String {
    let user = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let host = gethostname::gethostname();
    format!(
        "{}@{}",
        user.as_deref().unwrap_or("somebody"),
        host.to_string_lossy()
    )
}

/// How long it is until then, none if it is past.
fn left(until: Timestamp) -> Option<Duration> {
    Duration::try_from(until.duration_since(Timestamp::now()))
        .ok()
        .filter(|left| !left.is_zero())
}

/// A time on this machine's clock, and how long it is until then.
fn when(until: Timestamp) -> String {
    match left(until) {
        Some(left) => format!("{} (in {})", clock(until), spoken(left)),
        None => clock(until),
    }
}
