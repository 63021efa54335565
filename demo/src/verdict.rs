//! What came of it.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use graph_sim::MailboxReport;

use crate::braked::{self, Braked};
use crate::mails::Mail;
use crate::stage::Stage;
use crate::unbraked::{self, Unbraked};

/// Both acts, as those who sent and as Graph saw them.
pub struct Verdict {
    mails: usize,
    braked: Braked,
    unbraked: Unbraked,
    seen_braked: MailboxReport,
    seen_unbraked: MailboxReport,
    /// The ids of mails that did not come with the brake, and of those that came twice.
    missing: Vec<String>,
    repeated: Vec<String>,
}

pub fn of(stage: &Stage, mails: &[Mail], braked: Braked, unbraked: Unbraked) -> Verdict {
    let mut arrived: HashMap<String, usize> = HashMap::new();
    for message in stage.graph.messages() {
        if message.mailbox == braked::MAILBOX {
            *arrived.entry(message.message_id.unwrap_or_default()).or_default() += 1;
        }
    }
    let times = |mail: &&Mail| arrived.get(&mail.message_id).copied().unwrap_or(0);
    let ids = |wanted: fn(usize) -> bool| {
        let found = mails.iter().filter(|mail| wanted(times(mail)));
        found.map(|mail| mail.message_id.clone()).collect()
    };
    let report = stage.graph.report();
    Verdict {
        mails: mails.len(),
        missing: ids(|times| times == 0),
        repeated: ids(|times| times > 1),
        seen_braked: report.mailbox(braked::MAILBOX),
        seen_unbraked: report.mailbox(unbraked::MAILBOX),
        braked,
        unbraked,
    }
}

impl Verdict {
    /// True if the brake did what it is for.
    pub fn is_good(&self) -> bool {
        self.has_each_mail_once() && self.seen_braked.throttled() == 0 && self.braked.unbraked == 0
    }

    fn has_each_mail_once(&self) -> bool {
        self.missing.is_empty()
            && self.repeated.is_empty()
            && self.seen_braked.accepted == self.mails as u64
            && self.braked.sent == self.mails as u64
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_preset(UTF8_BORDERS_ONLY)
            .set_header(["", "with the brake", "without"]);
        let mut row = |name: &str, with: String, without: String| {
            table.add_row([name.to_owned(), with, without]);
        };
        let (with, without) = (&self.braked, &self.unbraked);
        row("mails", self.mails.to_string(), self.mails.to_string());
        row("sent", with.sent.to_string(), without.sent.to_string());
        row(
            "429s that Graph gave",
            self.seen_braked.throttled().to_string(),
            self.seen_unbraked.throttled().to_string(),
        );
        row("lost", with.not_sent.to_string(), without.lost.to_string());
        row("times a mail had to wait", with.waits.to_string(), "-".into());
        row(
            "reservations asked for",
            (with.allowed + with.denied).to_string(),
            "-".into(),
        );
        row("    of which denied", with.denied.to_string(), "-".into());
        row(
            "most mails that Graph saw in any 60 s",
            self.seen_braked.most_messages.to_string(),
            self.seen_unbraked.most_messages.to_string(),
        );
        row("duration", seconds(with.took), seconds(without.took));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.table())?;
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
        if self.braked.unbraked > 0 {
            writeln!(
                f,
                "NOT GOOD: {} went out without the brake, since Redis gave no decision.",
                self.braked.unbraked
            )?;
        }
        if self.seen_braked.throttled() > 0 {
            writeln!(f, "NOT GOOD: Graph refused mail in spite of the brake.")?;
        }
        let shown = match self.unbraked.lost {
            _ if !self.is_good() => "Please tell us".to_owned(),
            0 => "So few mails run into no limit: run it without --quick to see one".to_owned(),
            lost => format!("Without it Graph refused {lost}; with it none, and nobody had to try again"),
        };
        write!(
            f,
            "{shown}. Next: `make redis`, and send mail of your own with `mailrl send`."
        )
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
