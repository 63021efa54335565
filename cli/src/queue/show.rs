//! Messages, for people and as JSON.

use std::fmt;

use comfy_table::presets::NOTHING;
use jiff::Timestamp;
use mailrl_mailer::MessageState;
use mailrl_mailer::queue::{Entry, Record};
use serde::Serialize;

use super::when;
use crate::words::{one_line, printable, rfc3339};

/// How much of a reason is in the table; `mailrl queue show` has it all.
const LONGEST_REASON: usize = 60;

/// Messages as lines of a table.
pub struct Table(comfy_table::Table);

impl Table {
    pub fn new() -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_preset(NOTHING)
            .set_header(["ID", "STATE", "MAILBOX", "UNTIL", "WAITED", "FAILED", "WHY"]);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self(table)
    }

    pub fn add(&mut self, Entry { id, record }: &Entry) {
        self.0.add_row([
            id.to_string(),
            record.state.to_string(),
            printable(&record.mailbox).into_owned(),
            until(record).map_or_else(|| "-".into(), moment),
            record.denials.to_string(),
            record.failures.to_string(),
            shortened(record.reason.as_deref().unwrap_or("-")),
        ]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.0.to_string();
        let lines: Vec<_> = table.lines().map(str::trim_end).collect();
        formatter.write_str(&lines.join("\n"))
    }
}

fn shortened(reason: &str) -> String {
    let reason = one_line(&printable(reason));
    match reason.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    }
}

/// All that is known of a message.
pub fn lines(Entry { id, record }: &Entry) -> Vec<String> {
    let mut lines = vec![
        id.to_string(),
        format!("  state    {}", record.state),
        format!("  mailbox  {}", record.mailbox),
    ];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<7}  {value}"));
    if let Some(tenant) = &record.job.tenant {
        line("tenant", tenant.clone());
    }
    if let Some(until) = until(record) {
        line("until", moment(until));
    }
    if let Some(reason) = &record.reason {
        line("why", one_line(reason));
    }
    line("created", moment(record.created_at));
    line(
        "tries",
        format!(
            "had to wait {} times, failed {} times",
            record.denials, record.failures
        ),
    );
    if record.state == MessageState::Unknown {
        line(
            "now",
            format!(
                "look for it in the mailbox's sent mail, then mailrl queue sent {id} or mailrl queue send {id}"
            ),
        );
    }
    lines.push("  history".into());
    for step in &record.history {
        let why = step
            .reason
            .as_deref()
            .map_or_else(String::new, |reason| format!("  {}", one_line(reason)));
        let at = timestamp(step.at);
        lines.push(
            format!("    {}  {:<9}{why}", rfc3339(at), step.state.as_str())
                .trim_end()
                .to_owned(),
        );
    }
    lines
}

/// The fields that `--json` promises.
#[derive(Serialize)]
struct Json<'r> {
    id: &'r str,
    state: MessageState,
    mailbox: &'r str,
    tenant: Option<&'r str>,
    until: Option<String>,
    reason: Option<&'r str>,
    denials: u32,
    failures: u32,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<JsonStep<'r>>>,
}

#[derive(Serialize)]
struct JsonStep<'r> {
    at: String,
    state: MessageState,
    reason: Option<&'r str>,
}

pub fn json(Entry { id, record }: &Entry, with_history: bool) -> String {
    let history = record.history.iter().map(|step| JsonStep {
        at: rfc3339(timestamp(step.at)),
        state: step.state,
        reason: step.reason.as_deref(),
    });
    let json = Json {
        id: id.as_str(),
        state: record.state,
        mailbox: &record.mailbox,
        tenant: record.job.tenant.as_deref(),
        until: until(record).map(|until| rfc3339(timestamp(until))),
        reason: record.reason.as_deref(),
        denials: record.denials,
        failures: record.failures,
        created_at: rfc3339(timestamp(record.created_at)),
        history: with_history.then(|| history.collect()),
    };
    serde_json::to_string(&json).unwrap_or_default()
}

/// Until when it waits, or a worker has it at most.
fn until(record: &Record) -> Option<u64> {
    match record.state {
        MessageState::Scheduled => record.scheduled_on,
        MessageState::Sending => record.claim.as_ref().map(|claim| claim.until),
        _ => None,
    }
}

/// A time in ms since 1970 for people.
pub fn moment(ms: u64) -> String {
    when(timestamp(ms))
}

fn timestamp(ms: u64) -> Timestamp {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::MAX)
}
