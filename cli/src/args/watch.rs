//! Looking at all mailboxes: `watch`.

use clap::Args as Group;

use super::RecordsPlace;
use crate::exit;

const WATCH_NOTES: &str = "\
Keys: up and down choose, / searches, p pauses, r resumes, l changes limits,
? explains, q quits. What changes something asks first.

All mailboxes of one Redis are shown; of a cluster those of the node that is asked.";

/// Watch all mailboxes on the terminal, and pause, resume or limit them
///
/// Each with what it has used of its minute and its day, when there is room, what waits for it in the
/// queue and until when, and its sends under way; the fullest first, once a second.
#[derive(Group)]
#[command(after_help = format!("{WATCH_NOTES}\n\n{}", exit::HELP))]
pub struct Watch {
    #[command(flatten)]
    pub records: RecordsPlace,
}
