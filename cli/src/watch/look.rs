//! Looks at Redis in the background once a second, and makes the changes that are wished for.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::wish::Wish;
use crate::config::Config;
use crate::overview::{Overview, Poller};
use crate::server::{Server, Trouble};

const EVERY: Duration = Duration::from_secs(1);

/// What is told of it; errors in words.
pub enum News {
    Saw(Result<Overview, String>),
    Done(Result<String, String>),
}

/// Goes on until nobody listens any more, and connects again after any trouble.
pub async fn look(
    config: Config,
    mut server: Result<Server, Trouble>,
    mut poller: Poller,
    mut wishes: mpsc::Receiver<Wish>,
    news: mpsc::Sender<News>,
) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let wish = tokio::select! {
            _ = ticks.tick() => None,
            wish = wishes.recv() => match wish {
                Some(wish) => Some(wish),
                None => return,
            },
        };
        if server.is_err() {
            // The address was good when it began.
            if let Ok(again) = Server::connect(&config).await {
                server = again;
            }
        }
        if let Some(wish) = wish {
            let done = match &server {
                Ok(server) => wish.carry_out(server).await,
                Err(trouble) => Err(format!("nothing was changed: {}", trouble.advice())),
            };
            if news.send(News::Done(done)).await.is_err() {
                return;
            }
        }
        let seen = match &server {
            Ok(server) => poller.poll(server).await,
            Err(trouble) => Err(trouble.clone()),
        };
        let told = match seen {
            Ok(overview) => Ok(overview),
            Err(trouble) => {
                let advice = trouble.advice();
                server = Err(trouble);
                Err(advice)
            }
        };
        if news.send(News::Saw(told)).await.is_err() {
            return;
        }
    }
}
