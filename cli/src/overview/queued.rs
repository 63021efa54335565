//! What the queue holds for each mailbox.

use std::collections::HashMap;

use mailrl_mailer::MessageState;
use mailrl_mailer::queue::{Page, Record, Records, RecordsError};
use serde::Serialize;

/// How many messages are looked at, those that are due first; records are read one by one, so a
/// queue of a million must not be read again and again.
pub const MOST_MESSAGES: usize = 5_000;

const PAGE: usize = 500;

/// What waits for one mailbox; times in ms since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// Messages that wait or are being sent.
    pub waiting: u64,
    /// When the first of those that wait for a time may go.
    pub next_at: Option<u64>,
    /// When the last of them may.
    pub last_at: Option<u64>,
    /// Messages that may have been sent: a person decides.
    pub undecided: u64,
}

/// What waits for whom, by the mailboxes' names.
#[derive(Debug, Default)]
pub struct Waiting {
    pub by_mailbox: HashMap<String, Queued>,
    /// True if there are more messages than were looked at.
    pub is_partial: bool,
}

impl Waiting {
    /// Looks at the queue.
    pub async fn read(records: &Records) -> Result<Self, RecordsError> {
        let mut waiting = Self::default();
        for offset in (0..MOST_MESSAGES).step_by(PAGE) {
            let listed = records.open(0, None, Page { offset, limit: PAGE }).await?;
            let ids: Vec<_> = listed.into_iter().map(|listed| listed.id).collect();
            // One that cannot be read is shown by `mailrl queue`.
            let found = records.load_many(&ids).await?.into_iter().filter_map(Result::ok);
            for message in found.flatten() {
                waiting.count(&message.record);
            }
            waiting.is_partial = ids.len() == PAGE;
            if !waiting.is_partial {
                break;
            }
        }
        Ok(waiting)
    }

    fn count(&mut self, record: &Record) {
        if record.state.has_ended() {
            return;
        }
        let queued = self.by_mailbox.entry(record.mailbox.clone()).or_default();
        if record.state == MessageState::Unknown {
            queued.undecided += 1;
            return;
        }
        queued.waiting += 1;
        if let (MessageState::Scheduled, Some(at)) = (record.state, record.scheduled_on) {
            queued.next_at = Some(queued.next_at.map_or(at, |next| next.min(at)));
            queued.last_at = queued.last_at.max(Some(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(state: &str, scheduled_on: Option<u64>) -> Record {
        let record = json!({
            "state": state, "mailbox": "a@b", "scheduled_on": scheduled_on, "created_at": 1,
            "job": { "message_id": "m" }, "job_id": "m",
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn what_waits_is_counted_with_its_first_and_last_time() {
        let mut waiting = Waiting::default();
        for (state, at) in [
            ("SCHEDULED", Some(30)),
            ("SCHEDULED", Some(10)),
            ("SCHEDULED", Some(20)),
            ("PENDING", None),
            ("SENDING", Some(5)),
            ("UNKNOWN", None),
            ("SENT", None),
            ("FAILED", None),
        ] {
            waiting.count(&record(state, at));
        }
        let expected = Queued {
            waiting: 5,
            next_at: Some(10),
            last_at: Some(30),
            undecided: 1,
        };
        assert_eq!(waiting.by_mailbox["a@b"], expected);
    }
}
