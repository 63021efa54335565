//! A status for people.

use std::time::Duration;

use mailrl_client::Mailbox;

use super::reply::{Status, Window};
use crate::words::{after, clock, grouped, spoken};

const BAR_CELLS: u64 = 20;

/// The lines that show how a mailbox stands.
pub fn lines(mailbox: &Mailbox, status: &Status) -> Vec<String> {
    let mut lines = vec![
        format!("{mailbox} ({} windows)", status.window),
        format!("  minute     {}", window(&status.minute, "messages")),
        format!("  day        {}", window(&status.day, "recipients")),
        format!(
            "  under way  {}",
            match status.open {
                0 => "no open reservation".into(),
                1 => "1 open reservation".into(),
                open => format!("{} open reservations", grouped(open)),
            }
        ),
    ];
    if status.paused_for_ms > 0 {
        lines.push(format!("  paused     until {}", when(status.paused_for_ms)));
    }
    let overrides = [
        ("per minute", status.overrides.per_minute),
        ("recipients per day", status.overrides.recipients_per_day),
        ("concurrent", status.overrides.concurrent),
    ];
    let set: Vec<_> = overrides
        .into_iter()
        .filter_map(|(name, limit)| Some(format!("{name} {}", grouped(limit?))))
        .collect();
    if !set.is_empty() {
        lines.push(format!("  overrides  {}", set.join(", ")));
    }
    lines
}

fn window(window: &Window, what: &str) -> String {
    let room = if window.room_in_ms == 0 {
        "room now".into()
    } else {
        format!("room at {}", when(window.room_in_ms))
    };
    let used = format!("{} / {} {what}", grouped(window.used), grouped(window.limit));
    format!("{} {used:<26} {room}", bar(window.used, window.limit))
}

/// How many of a bar's cells are filled: all only when nothing is left, none only when nothing is used.
pub fn filled(used: u64, limit: u64, cells: u64) -> u64 {
    let used = used.min(limit);
    match used.saturating_mul(cells) / limit.max(1) {
        0 if used > 0 => 1,
        filled => filled,
    }
}

fn bar(used: u64, limit: u64) -> String {
    let filled = filled(used, limit, BAR_CELLS);
    (0..BAR_CELLS)
        .map(|cell| if cell < filled { '█' } else { '░' })
        .collect()
}

fn when(ms: u64) -> String {
    let wait = Duration::from_millis(ms);
    format!("{} (in {})", clock(after(wait)), spoken(wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_or_empty_only_when_the_window_is() {
        let cells = |used, limit| bar(used, limit).matches('█').count();
        assert_eq!(cells(0, 9000), 0);
        assert_eq!(cells(1, 9000), 1);
        assert_eq!(cells(8999, 9000), 19);
        assert_eq!(cells(9000, 9000), 20);
        assert_eq!(cells(30, 25), 20);
        assert_eq!(cells(u64::MAX, u64::from(u32::MAX)), 20);
    }
}
