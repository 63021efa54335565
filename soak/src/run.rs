//! A run: mail goes in and faults strike, then the queue empties, and all that is known is gathered.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{try_join, try_join_all};
use futures_util::{StreamExt, TryStreamExt};
use mailrl_mailer::queue::{Filter, QueueOptions, SendQueue};
use mailrl_mailer::{MessageId, MessageState};
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

use crate::books::{Accepted, Books, judged};
use crate::mailboxes::MAILBOXES;
use crate::plan::{self, Planned, TRACKS};
use crate::post::put_in;
use crate::scene::Scene;
use crate::{Failure, say};

const TELL_EVERY: Duration = Duration::from_secs(10);
/// A mail whose worker was killed waits for its claim and the queue's stall check, two minutes in
/// all, and then for its place among the others.
const EMPTY_WITHIN: Duration = Duration::from_mins(6);

/// Runs it, and answers what the books are to be balanced with.
pub async fn run(scene: &Scene, minutes: u32, seed: u64) -> Result<Books, Failure> {
    let start = Instant::now();
    let until = start + Duration::from_secs(u64::from(minutes) * 60);
    let plan = plan::draw(seed, minutes);
    let queue = QueueOptions {
        redis_url: scene.redis_url.clone(),
        prefix: "bull".to_owned(),
        store: format!("file://{}", scene.folder.path().join("mails").display()),
    };
    let faults = TRACKS.map(|track| {
        let planned = plan.iter().filter(move |planned| planned.track == track).copied();
        apply(scene, start, planned)
    });
    let posts = MAILBOXES
        .iter()
        .map(|mailbox| put_in(mailbox, queue.clone(), scene.journal.clone(), until));
    let busy = try_join(try_join_all(faults), try_join_all(posts));
    tokio::select! {
        ended = busy => { ended?; }
        () = tell(scene, start) => {}
    }
    say(&format!(
        "{} no more faults, no more mail; the queue empties",
        clock(start)
    ));
    let queue = SendQueue::connect(&queue).await?;
    let emptied = tokio::select! {
        emptied = timeout(EMPTY_WITHIN, empty(&queue)) => emptied,
        () = tell(scene, start) => Ok(Ok(())),
    };
    // What is still there then, the books tell.
    if let Ok(emptied) = emptied {
        emptied?;
    }
    scene.end().await?;
    gather(scene, &queue).await
}

async fn apply(scene: &Scene, start: Instant, planned: impl Iterator<Item = Planned>) -> Result<(), Failure> {
    for Planned {
        fault, at, length, ..
    } in planned
    {
        sleep_until(start + at).await;
        say(&format!(
            "{} {fault:?} for {:.1} s",
            clock(start),
            length.as_secs_f64()
        ));
        scene.strike(fault, length).await?;
    }
    Ok(())
}

/// Waits until no message is on its way any more.
async fn empty(queue: &SendQueue) -> Result<(), Failure> {
    let open = Filter {
        states: vec![
            MessageState::Pending,
            MessageState::Scheduled,
            MessageState::Sending,
        ],
        mailbox: None,
    };
    while pin!(queue.list(&open)).next().await.transpose()?.is_some() {
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn gather(scene: &Scene, queue: &SendQueue) -> Result<Books, Failure> {
    let put_in = std::mem::take(&mut scene.journal.read().put_in);
    let messages = futures_util::stream::iter(put_in)
        .then(async |id| {
            let found = queue.show(&id.parse::<MessageId>()?).await?;
            Ok::<_, Failure>((id, found.map(|entry| entry.record.state)))
        })
        .try_collect()
        .await?;
    let accepted = scene.graph.messages().into_iter().map(|mail| Accepted {
        id: mail.message_id.unwrap_or_default(),
        mailbox: mail.mailbox,
        at: mail.accepted_at_ms,
    });
    let written = scene.journal.read();
    Ok(Books {
        messages,
        accepted: accepted.collect(),
        limits: written.limits.clone(),
        unsure: written.unsure.clone(),
        budget: written.budget,
    })
}

/// Tells from time to time how it goes, for ever.
async fn tell(scene: &Scene, start: Instant) {
    let mut ticks = interval(TELL_EVERY);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let taken = scene.graph.messages().len();
        let written = scene.journal.read();
        say(&format!(
            "{} {} put in, Graph took {taken}; workers: {} sent, {} not sent, {} unknown; {} kills",
            clock(start),
            written.put_in.len(),
            written.budget.sent,
            written.budget.not_sent,
            written.budget.unknown,
            written.budget.kills,
        ));
    }
}

fn clock(start: Instant) -> String {
    format!("{:>4} s ", start.elapsed().as_secs())
}

/// The books in figures.
pub fn summary(scene: &Scene, books: &Books) -> String {
    let count = |wanted| {
        books
            .messages
            .iter()
            .filter(|(_, state)| *state == Some(wanted))
            .count()
    };
    format!(
        "\n{} messages put in: {} SENT, {} UNKNOWN, {} FAILED. Graph took {}; {} of them at a time at which each \
         mail is counted, and judged by the minute.\n{:?}\n\n{}\n",
        books.messages.len(),
        count(MessageState::Sent),
        count(MessageState::Unknown),
        count(MessageState::Failed),
        books.accepted.len(),
        judged(books).count(),
        books.budget,
        scene.graph.report(),
    )
}
