//! The mailboxes that mail goes out of, and how much of it.

use std::time::Duration;

/// What each mailbox may send in a minute, unless an operator says otherwise.
pub const PER_MINUTE: u32 = 75;
/// What Graph itself takes in any minute: as far from that as 30 is from 25.
pub const GRAPH_TAKES: u64 = 90;

/// One mailbox: so many mails at once, so often.
pub struct Mailbox {
    pub name: &'static str,
    pub mails: u64,
    pub every: Duration,
}

pub const MAILBOXES: [Mailbox; 4] = [
    // It runs into its limit.
    mailbox("campaign@example.com", 60, 60_000),
    mailbox("orders@example.com", 1, 900),
    mailbox("service@example.com", 1, 1_100),
    mailbox("clerk@example.com", 1, 2_300),
];

const fn mailbox(name: &'static str, mails: u64, every_ms: u64) -> Mailbox {
    Mailbox {
        name,
        mails,
        every: Duration::from_millis(every_ms),
    }
}
