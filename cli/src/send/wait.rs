//! Waiting for a mail's turn.

use std::time::Duration;

use mailrl_client::Mailbox;

use super::report::Wait;
use crate::interruption::Interruption;
use crate::terminal::Terminal;
use crate::words::{clock, spoken};

const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// Waits until the mail may go, and says so: a bar on a terminal, else a line. False if the command
/// was asked to end before that.
pub async fn wait_for(
    wait: &Wait,
    file: &str,
    mailbox: &Mailbox,
    terminal: &Terminal,
    interruption: &Interruption,
) -> bool {
    let total = wait.left();
    let text = format!(
        "{file}: waits until {} ({{}}): {}",
        clock(wait.until),
        wait.why(mailbox)
    );
    let told = |left| text.replacen("{}", &spoken(left), 1);
    let sleep = tokio::time::sleep(total);
    tokio::pin!(sleep);
    let Some(bar) = terminal.bar(milliseconds(total)) else {
        terminal.err(&told(total));
        return tokio::select! {
            () = sleep => true,
            () = interruption.asked() => false,
        };
    };
    let is_its_turn = loop {
        let left = wait.left();
        bar.set_position(milliseconds(total.saturating_sub(left)));
        bar.set_message(told(left));
        tokio::select! {
            () = &mut sleep => break true,
            () = interruption.asked() => break false,
            () = tokio::time::sleep(REDRAW_EVERY) => {}
        }
    };
    bar.finish_and_clear();
    is_its_turn
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
