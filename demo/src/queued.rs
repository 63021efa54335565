//! With the brake: mail goes into the queue, and two `mailrl worker` processes send it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use mailrl_mailer::service::events;
use tokio::sync::mpsc;

use crate::Failure;
use crate::args::Args;
use crate::mails::{Campaign, Mail};
use crate::progress::Progress;
use crate::stage::Stage;
use crate::tool::{Entry, Said, Tool, end};

/// The mailbox that the campaign goes out of.
pub const MAILBOX: &str = "campagne@example.com";

const WORKERS: usize = 2;

/// How it went.
#[derive(Debug, Default)]
pub struct Queued {
    pub campaign: Tally,
    pub singles: Tally,
    /// What each worker sent.
    pub by_worker: [u64; WORKERS],
    /// How many went out since Redis gave no decision.
    pub unbraked: u64,
    /// Reservations that Redis gave, and did not give: the minute was full, or three mails of the
    /// mailbox were on their way.
    pub allowed: u64,
    pub denied_minute: u64,
    pub denied_concurrent: u64,
    pub took: Duration,
}

/// What became of some mails.
#[derive(Debug, Default)]
pub struct Tally {
    pub sent: u64,
    pub not_sent: u64,
    /// How often one of them was put off.
    pub deferred: u64,
    /// From the queue to Graph, of the one that took longest.
    pub longest: Duration,
}

/// Everything that is to be sent, and since when.
struct Mails<'m> {
    campaign: &'m Campaign,
    queued_at: HashMap<&'m str, Instant>,
}

pub async fn send(args: &Args, stage: &Stage, campaign: &Campaign) -> Result<Queued, Failure> {
    let tool = Tool::new(args, stage)?;
    let start = Instant::now();
    let (said, mut listen) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        workers.push(tool.worker(number, &said)?);
    }
    drop(said);
    let mut mails = Mails {
        campaign,
        queued_at: HashMap::new(),
    };
    mails.enqueue(&tool, MAILBOX, &campaign.mails).await?;
    let mut progress = Progress::new(campaign.mails.len(), campaign.singles.len());
    let mut queued = Queued::default();
    let mut others = Vec::new();
    let mut singles = std::pin::pin!(tokio::time::sleep(args.singles_after()));
    let mut are_singles_queued = false;
    while queued.ended() < campaign.len() {
        let said = tokio::select! {
            said = listen.recv() => said,
            () = &mut singles, if !are_singles_queued => {
                are_singles_queued = true;
                for (mailbox, mail) in &campaign.singles {
                    mails.enqueue(&tool, mailbox, std::slice::from_ref(mail)).await?;
                }
                continue;
            }
            () = progress.tick() => continue,
        };
        match said {
            Some((worker, Said::Event(event))) => {
                others.extend(event.error.clone());
                queued.note(worker, &event, &mails, &mut progress);
            }
            Some((_, Said::Other(line))) => others.push(line),
            None => return Err(format!("the workers ended too early:\n{}", others.join("\n")).into()),
        }
    }
    queued.took = start.elapsed();
    progress.end();
    for worker in workers {
        end(worker).await?;
    }
    queued.allowed = stage.counted("allowed").await?;
    queued.denied_minute = stage.counted("denied_minute").await?;
    queued.denied_concurrent = stage.counted("denied_concurrent").await?;
    Ok(queued)
}

impl Queued {
    /// How many mails have come to their end.
    fn ended(&self) -> usize {
        let ended = [&self.campaign, &self.singles].map(|mails| mails.sent + mails.not_sent);
        usize::try_from(ended.iter().sum::<u64>()).unwrap_or(usize::MAX)
    }

    fn note(&mut self, worker: usize, event: &Entry, mails: &Mails<'_>, progress: &mut Progress) {
        if event.event == mailrl_client::events::REDIS_ERROR {
            self.unbraked += 1;
        }
        let Some(id) = event.message_id.as_deref() else {
            return;
        };
        let is_campaign = mails.campaign.mails.iter().any(|mail| mail.message_id == id);
        let (sent, bar) = if is_campaign {
            (&mut self.campaign, &mut progress.campaign)
        } else {
            (&mut self.singles, &mut progress.singles)
        };
        match event.event.as_str() {
            events::SENT => {
                sent.sent += 1;
                let took = mails.queued_at.get(id).map_or(Duration::ZERO, Instant::elapsed);
                sent.longest = sent.longest.max(took);
                if let Some(count) = self.by_worker.get_mut(worker) {
                    *count += 1;
                }
                bar.sent(id);
            }
            events::DEFERRED | events::RETRIED => {
                sent.deferred += 1;
                let until = event
                    .scheduled_on
                    .and_then(|ms| Timestamp::from_millisecond(ms).ok());
                bar.deferred(id, until);
            }
            events::FAILED | events::UNKNOWN => {
                sent.not_sent += 1;
                bar.failed(id);
            }
            _ => {}
        }
    }
}

impl<'m> Mails<'m> {
    async fn enqueue(&mut self, tool: &Tool, mailbox: &str, mails: &'m [Mail]) -> Result<(), Failure> {
        let now = Instant::now();
        self.queued_at
            .extend(mails.iter().map(|mail| (mail.message_id.as_str(), now)));
        tool.enqueue(mailbox, mails).await
    }
}
