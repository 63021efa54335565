//! The picture: a head, the list, the chosen mailbox, and what keys do.

use std::time::Duration;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use super::detail;
use super::line::{Line, Purpose};
use super::state::{Mode, State, share};
use crate::overview::{MailboxView, Queued};
use crate::status::Window;
use crate::words::{clock, compact, counted, grouped, name, one_line, printable, short};

const KEYS: &str = " ↑↓ choose  / search  p pause  r resume  l limits  ? help  q quit";
const DETAIL_HEIGHT: u16 = 8;

pub fn draw(frame: &mut Frame, state: &State) {
    let detail = if frame.area().height >= 16 {
        DETAIL_HEIGHT
    } else {
        0
    };
    let [head, list, chosen, status, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(detail),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(self::head(state), head);
    if state.mode == Mode::Help {
        frame.render_widget(detail::help(), list.union(chosen));
    } else {
        self::list(frame, list, state);
        if let Some(mailbox) = state.chosen() {
            detail::draw(frame, chosen, mailbox, state.history(&mailbox.key));
        }
    }
    frame.render_widget(self::status(state), status);
    frame.render_widget(Paragraph::new(KEYS).dim(), keys);
}

fn head(state: &State) -> Text<'static> {
    let mut head = vec![
        Span::from(" mailrl watch ").bold().reversed(),
        Span::from(format!("  {}", clock(Timestamp::now()))),
        Span::from(format!(
            "  {}",
            counted(state.mailboxes() as u64, "mailbox").replace("boxs", "boxes")
        )),
    ];
    if !state.search.is_empty() {
        let shown = grouped(state.rows() as u64);
        head.push(Span::from(format!("  {shown} with \"{}\"", state.search)).yellow());
    }
    if !state.missing().is_empty() {
        let missing = one_line(&printable(&state.missing().join("; ")));
        head.push(Span::from(format!("  not shown: {missing}")).yellow());
    }
    Text::from(head)
}

fn list(frame: &mut Frame, area: Rect, state: &State) {
    if state.rows() == 0 {
        let why = match (state.has_seen, state.search.is_empty()) {
            (false, _) => "",
            (true, true) => "  No mailbox has sent anything in the last day.",
            (true, false) => "  No mailbox has this in its name; Esc shows all.",
        };
        frame.render_widget(Paragraph::new(vec![Text::from(""), Text::from(why)]), area);
        return;
    }
    let bar = usize::from((area.width.saturating_sub(80) / 5).clamp(0, 20) + 4);
    let height = usize::from(area.height.saturating_sub(1));
    let chosen = state.chosen_row();
    // The chosen row stays in the middle, but at both ends.
    let first = chosen
        .saturating_sub(height / 2)
        .min(state.rows().saturating_sub(height));
    let rows = (first..state.rows().min(first + height))
        .map(|row| self::row(state.mailbox(row), bar, row == chosen));
    #[expect(clippy::cast_possible_truncation, reason = "24 at most")]
    let bar = bar as u16;
    let columns = [
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(bar + 10),
        Constraint::Length(bar + 12),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(4),
        Constraint::Length(5),
    ];
    let titles = [
        "", "MAILBOX", "MINUTE", "DAY", " RETRY", "PAUSED", "OPEN", "QUEUE",
    ];
    let mut table = Table::new(rows, columns).header(Row::new(titles).style(Modifier::BOLD));
    if state.trouble.is_some() {
        // What was seen last, which may not hold any more.
        table = table.style(Modifier::DIM);
    }
    frame.render_widget(table, area);
}

fn row(mailbox: &MailboxView, bar: usize, is_chosen: bool) -> Row<'static> {
    let mark = if is_chosen { "▶" } else { "" };
    let mut cells = vec![Text::from(mark), Text::from(name(&mailbox.mailbox))];
    match mailbox.status() {
        Some(status) => {
            let retry = status.minute.room_in_ms.max(status.day.room_in_ms);
            cells.extend([
                window(&status.minute, bar, 0),
                window(&status.day, bar, 10_000),
                wait(retry, "now").yellow_if(retry > 0),
                wait(status.paused_for_ms, "").yellow_if(status.paused_for_ms > 0),
                Text::from(number(status.open)).right_aligned(),
            ]);
        }
        None => cells.extend([
            Text::from("no state").red(),
            Text::default(),
            Text::default(),
            Text::default(),
            Text::default(),
        ]),
    }
    cells.push(Text::from(queue(&mailbox.queued)).right_aligned());
    let row = Row::new(cells);
    if is_chosen { row.style(Modifier::BOLD) } else { row }
}

trait YellowIf {
    fn yellow_if(self, is_so: bool) -> Self;
}

impl YellowIf for Text<'static> {
    fn yellow_if(self, is_so: bool) -> Self {
        if is_so { self.yellow() } else { self }
    }
}

/// None is blank: what is there stands out.
fn number(number: u64) -> String {
    if number == 0 {
        String::new()
    } else {
        compact(number, 0)
    }
}

/// A mark where a person has to decide on something.
fn queue(queued: &Queued) -> String {
    let mark = if queued.undecided > 0 { "!" } else { "" };
    format!("{}{mark}", number(queued.waiting))
}

fn wait(ms: u64, none: &str) -> Text<'static> {
    let text = match ms {
        0 => none.to_owned(),
        ms => short(Duration::from_millis(ms)),
    };
    Text::from(text).right_aligned()
}

fn window(window: &Window, cells: usize, long: u64) -> Text<'static> {
    let filled = crate::status::filled(window.used, window.limit, cells as u64);
    let filled = usize::try_from(filled).unwrap_or(cells);
    let numbers = format!(" {}/{}", compact(window.used, long), compact(window.limit, long));
    Text::from(vec![
        Span::styled("█".repeat(filled), colour(window)),
        Span::from("░".repeat(cells - filled)).dim(),
        Span::from(numbers),
    ])
}

pub fn colour(window: &Window) -> Style {
    Style::new().fg(match share(window) {
        full if full >= 1.0 => Color::Red,
        high if high >= 0.8 => Color::Yellow,
        _ => Color::Green,
    })
}

/// The line that is typed, the question that is asked, what is wrong, or what was done.
fn status(state: &State) -> Text<'static> {
    match &state.mode {
        Mode::Typing(line) => return typed(line),
        Mode::Asking(wish) => {
            return Text::from(vec![
                // In front, where no long name pushes them out of sight.
                Span::from(" y yes  n no  ").yellow().bold(),
                Span::from(format!("{wish}?")).bold(),
            ]);
        }
        Mode::List | Mode::Help => {}
    }
    match (&state.note, &state.trouble) {
        (Some(note), _) => {
            let text = Text::from(format!(" {}", one_line(&printable(&note.text))));
            if note.is_error { text.red() } else { text.green() }
        }
        (None, Some(trouble)) => {
            Text::from(format!(" trying again: {}", one_line(&printable(trouble)))).red()
        }
        (None, None) if !state.has_seen => Text::from(" looking …"),
        (None, None) => Text::default(),
    }
}

fn typed(line: &Line) -> Text<'static> {
    let (what, hint) = match &line.purpose {
        Purpose::Search => ("search: ".into(), "  Enter keeps it, Esc shows all"),
        Purpose::Pause((_, mailbox)) => (format!("pause {} for: ", name(mailbox)), "  as 90s, 10m, 2h"),
        Purpose::Limits((_, mailbox)) => (
            format!("limits of {}: ", name(mailbox)),
            "  minute 10 day 5000 at-once 2 | reset",
        ),
    };
    let hint = match &line.wrong {
        Some(wrong) => Span::from(format!("  {wrong}")).red(),
        None => Span::from(hint).dim(),
    };
    Text::from(vec![
        Span::from(format!(" {what}")).bold(),
        Span::from(line.text.clone()),
        Span::from(" ").reversed(),
        hint,
    ])
}
