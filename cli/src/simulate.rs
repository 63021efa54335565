//! `mailrl simulate`: a campaign in virtual time.

use std::time::Duration;

use mailrl_core::{Config, WindowKind};
use mailrl_simulation::{Progress, Scenario, Spread, SpreadBy, plot, run as play};

use crate::args;
use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::words::{counted, grouped, spoken};

/// Plays the scenario, shows what came of it, and draws it if asked to.
pub fn run(args: &args::Simulate, terminal: &Terminal) -> Exit {
    if never_ends(args) {
        terminal.err(
            "mailrl: the urgent mails alone are more than the limits let out, so it would not end: set \
             --urgent-every to a longer time",
        );
        return Exit::Usage;
    }
    let bar = terminal.bar(u64::from(args.backlog));
    let report = play(&scenario(args), |progress| {
        if let Some(bar) = &bar {
            let Progress {
                after, done, mails, ..
            } = progress;
            let (done, mails) = (done as u64, mails as u64);
            bar.set_length(mails);
            bar.set_position(done);
            // Whole minutes, else the end of the line flickers.
            let after = Duration::from_mins(after.as_secs() / 60);
            bar.set_message(format!(
                "{} of {}, {} on",
                grouped(done),
                counted(mails, "mail"),
                spoken(after)
            ));
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            terminal.err(&format!("mailrl: {error}"));
            return Exit::Usage;
        }
    };
    let _ = terminal.out(&report.to_string());
    if let Some(path) = &args.plot {
        if let Err(error) = plot(&report, path) {
            terminal.err(&format!("{}: {error}", path.display()));
            return Exit::Failed;
        }
        terminal.err(&format!("{}: drawn", path.display()));
    }
    Exit::Done
}

/// Whether more urgent mails come in than may go out.
fn never_ends(args: &args::Simulate) -> bool {
    let Some(every) = args.urgent_every else {
        return false;
    };
    let are_too_many = |limit: u32, span: Duration| every.saturating_mul(limit) <= span;
    are_too_many(args.per_minute, Duration::from_mins(1))
        || args
            .recipients_per_day
            .is_some_and(|limit| are_too_many(limit, Duration::from_hours(24)))
}

fn scenario(args: &args::Simulate) -> Scenario {
    let usual = Scenario::default();
    Scenario {
        backlog: args.backlog,
        backlog_bulk_percent: args.bulk,
        recipients: args.recipients.clone(),
        urgent_every: args.urgent_every,
        config: Config {
            per_minute: args.per_minute,
            per_day: args.recipients_per_day.unwrap_or(usual.config.per_day),
            kind: match args.window {
                args::Window::Calendar => WindowKind::Calendar,
                args::Window::Rolling => WindowKind::Rolling,
            },
            pacing: !args.no_pacing,
            ..usual.config
        },
        concurrent: args.concurrent,
        spread: Spread {
            most: args.spread,
            by: SpreadBy::MessageId,
        },
        pods: vec![args.pods.senders.into(); args.pods.pods.into()],
        transit: args.send_time.clone(),
        called_off_after: args.called_off_after,
        seed: args.seed,
        ..usual
    }
}
