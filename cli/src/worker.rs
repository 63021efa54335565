//! `mailrl worker`: sends what waits in the queue.

use std::time::Duration;

use mailrl_mailer::MailProviderService;
use mailrl_mailer::factory::{MailerFactory, StartError};
use mailrl_mailer::queue::{
    MailStore, QUEUE, QueueWorker, QueueWorkerOptions, StoreError, Summary, WorkerError,
};
use mailrl_mailer::service::Policy;

use crate::args;
use crate::config::{Config, ConfigError};
use crate::exit::Exit;
use crate::interruption::Interruption;
use crate::terminal::Terminal;
use crate::words::counted;

/// No worker.
#[derive(Debug, thiserror::Error)]
enum CannotWork {
    #[error(transparent)]
    Mailers(#[from] StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] WorkerError),
}

/// Works until it is asked to end.
pub async fn run(args: args::Worker, mut config: Config, terminal: &Terminal) -> Result<Exit, ConfigError> {
    let interruption = Interruption::listen().map_err(ConfigError::Signals)?;
    config.prefer_graph(args.graph);
    let queue = config.queue(&args.place)?;
    let options = config.worker(&queue, args.concurrency);
    // Whatever is under way has come to its end by then.
    let grace = options.claim_time + options.send_time;
    let source = config.source().clone();
    let factory = MailerFactory::watch(move || source.read());
    let started = async {
        let factory = factory?;
        let worker = start(&factory, config.policy(), &queue.store, options);
        let worker = tokio::select! {
            worker = worker => Some(worker?),
            () = interruption.asked() => None,
        };
        Ok::<_, CannotWork>((factory, worker))
    };
    let (factory, worker) = match started.await {
        Ok((factory, Some(worker))) => (factory, worker),
        Ok((_, None)) => return Ok(Exit::Done),
        Err(error) => {
            terminal.err(&format!("mailrl: {error}"));
            return Ok(Exit::Usage);
        }
    };
    terminal.err(&format!(
        "mailrl: sending what waits in {QUEUE}; Ctrl-C lets it finish"
    ));
    interruption.asked().await;
    terminal.err("mailrl: finishing what is under way; once more ends it at once");
    Ok(finish(worker, &factory, grace, &interruption, terminal).await)
}

async fn start(
    factory: &MailerFactory,
    policy: Policy,
    store: &str,
    options: QueueWorkerOptions,
) -> Result<QueueWorker, CannotWork> {
    let service = MailProviderService::new(factory.clone(), policy);
    Ok(QueueWorker::start(service, MailStore::open(store)?, options).await?)
}

async fn finish(
    worker: QueueWorker,
    factory: &MailerFactory,
    grace: Duration,
    interruption: &Interruption,
    terminal: &Terminal,
) -> Exit {
    let before = worker.summary();
    let ending = async {
        let summary = worker.shutdown(grace).await;
        factory.limiter().flush().await;
        summary
    };
    tokio::select! {
        summary = ending => {
            terminal.err(&told(&summary));
            Exit::Done
        }
        () = interruption.asked_again() => {
            terminal.err(&told(&before));
            interruption.signal().map_or(Exit::Done, Exit::Interrupted)
        }
    }
}

fn told(summary: &Summary) -> String {
    let Summary {
        sent,
        deferred,
        retried,
        failed,
        unknown,
    } = summary;
    let [deferred, retried, failed, unknown] = [deferred, retried, failed, unknown].map(ToString::to_string);
    format!(
        "mailrl: {} sent; put off {deferred} times, tried again {retried} times; {failed} failed, {unknown} unknown",
        counted(*sent, "message")
    )
}
