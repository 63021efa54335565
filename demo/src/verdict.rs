//! What came of it.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

use crate::mails::{Campaign, Mail};
use crate::queued::{self, Queued};
use crate::stage::Stage;
use crate::unbraked::{self, Unbraked};

/// Both acts, as those who sent and as Graph saw them.
pub struct Verdict {
    mails: usize,
    queued: Queued,
    unbraked: Unbraked,
    /// The campaign's mailbox, the others' taken together, and the one without the brake.
    seen: Seen,
    seen_singles: Seen,
    seen_unbraked: Seen,
    /// The ids of mails that did not come with the brake, and of those that came twice.
    missing: Vec<String>,
    repeated: Vec<String>,
}

/// What Graph saw.
#[derive(Clone, Copy, Default)]
struct Seen {
    throttled: u64,
    most_messages: u64,
}

pub fn of(stage: &Stage, campaign: &Campaign, queued: Queued, unbraked: Unbraked) -> Verdict {
    let mut arrived: HashMap<String, usize> = HashMap::new();
    for message in stage.graph.messages() {
        if message.mailbox != unbraked::MAILBOX {
            *arrived.entry(message.message_id.unwrap_or_default()).or_default() += 1;
        }
    }
    let times = |mail: &&Mail| arrived.get(&mail.message_id).copied().unwrap_or(0);
    let ids = |wanted: fn(usize) -> bool| {
        let found = campaign.all().filter(|mail| wanted(times(mail)));
        found.map(|mail| mail.message_id.clone()).collect()
    };
    let report = stage.graph.report();
    let seen = |mailbox: &str| {
        let mailbox = report.mailbox(mailbox);
        Seen {
            throttled: mailbox.throttled(),
            most_messages: mailbox.most_messages,
        }
    };
    let singles = campaign.singles.iter().map(|(mailbox, _)| seen(mailbox));
    Verdict {
        mails: campaign.len(),
        missing: ids(|times| times == 0),
        repeated: ids(|times| times > 1),
        seen: seen(queued::MAILBOX),
        seen_singles: singles.fold(Seen::default(), Seen::and),
        seen_unbraked: seen(unbraked::MAILBOX),
        queued,
        unbraked,
    }
}

impl Seen {
    fn and(self, other: Self) -> Self {
        Self {
            throttled: self.throttled + other.throttled,
            most_messages: self.most_messages.max(other.most_messages),
        }
    }
}

impl Verdict {
    /// True if the brake did what it is for.
    pub fn is_good(&self) -> bool {
        self.has_each_mail_once() && self.throttled() == 0 && self.queued.unbraked == 0
    }

    fn has_each_mail_once(&self) -> bool {
        let sent = self.queued.campaign.sent + self.queued.singles.sent;
        self.missing.is_empty() && self.repeated.is_empty() && sent == self.mails as u64
    }

    fn throttled(&self) -> u64 {
        self.seen.throttled + self.seen_singles.throttled
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY).set_header([
            "",
            "campaign",
            "single mails",
            "campaign without the brake",
        ]);
        let (campaign, singles, without) = (&self.queued.campaign, &self.queued.singles, &self.unbraked);
        let mut row = |name: &str, cells: [String; 3]| {
            table.add_row(std::iter::once(name.to_owned()).chain(cells));
        };
        row(
            "sent",
            [campaign.sent, singles.sent, without.sent].map(|it| it.to_string()),
        );
        let throttled = [&self.seen, &self.seen_singles, &self.seen_unbraked].map(|seen| seen.throttled);
        row("429s that Graph gave", throttled.map(|it| it.to_string()));
        row(
            "lost",
            [campaign.not_sent, singles.not_sent, without.lost].map(|it| it.to_string()),
        );
        row(
            "times a mail was put off",
            [
                campaign.deferred.to_string(),
                singles.deferred.to_string(),
                "-".into(),
            ],
        );
        let most = [&self.seen, &self.seen_singles, &self.seen_unbraked].map(|seen| seen.most_messages);
        row(
            "most mails from one mailbox in any 60 s",
            most.map(|it| it.to_string()),
        );
        row(
            "the last was sent after",
            [campaign.longest, singles.longest, without.took].map(seconds),
        );
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queued = &self.queued;
        writeln!(f, "{}\n", self.table())?;
        writeln!(
            f,
            "The two workers sent {} and {} mails, in {}. Redis gave {} reservations; it denied {} for the minute, and \
             {} for a moment, since three mails of the mailbox were on their way.",
            queued.by_worker[0],
            queued.by_worker[1],
            seconds(queued.took),
            queued.allowed,
            queued.denied_minute,
            queued.denied_concurrent,
        )?;
        if self.has_each_mail_once() {
            writeln!(
                f,
                "With the brake each of the {} mails arrived exactly once (by its Message-ID).",
                self.mails
            )?;
        } else {
            writeln!(
                f,
                "NOT GOOD: of the {} mails with the brake {} are missing ({}) and {} came more than once ({}).",
                self.mails,
                self.missing.len(),
                self.missing.join(", "),
                self.repeated.len(),
                self.repeated.join(", ")
            )?;
        }
        if self.queued.unbraked > 0 {
            writeln!(
                f,
                "NOT GOOD: {} went out without the brake, since Redis gave no decision.",
                self.queued.unbraked
            )?;
        }
        if self.throttled() > 0 {
            writeln!(f, "NOT GOOD: Graph refused mail in spite of the brake.")?;
        }
        let shown = match self.unbraked.lost {
            _ if !self.is_good() => "Please tell us".to_owned(),
            0 => "So few mails run into no limit: run it without --quick to see one".to_owned(),
            lost => format!("Without it Graph refused {lost}; with it none, and nobody had to try again"),
        };
        write!(
            f,
            "{shown}. Next: `make redis`, and send mail of your own with `mailrl send` or `mailrl enqueue`."
        )
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
