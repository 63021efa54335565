//! The chosen mailbox, and the help.

use std::time::Duration;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line as Text;
use ratatui::widgets::{Block, Borders, Paragraph, Sparkline, SparklineBar, Wrap};

use super::draw::colour;
use super::history::{History, LOOKS};
use crate::overview::{MailboxView, Queued, Standing};
use crate::status::Status;
use crate::words::{counted, grouped, name, one_line, printable, short, spoken};

const HELP: &str = "
  ↑ ↓  k j           choose a mailbox (PgUp, PgDn, Home, End)
  /                  search by name; Esc shows all again
  p                  pause the chosen mailbox: nobody sends from it
  r                  end its pause
  l                  its limits, for all senders; reset drops them
  q  Ctrl-C          quit

  RETRY   when there is room for one more
  PAUSED  for how long nobody may send
  OPEN    sends under way
  QUEUE   messages that wait; ! if a person has to decide on some

  The fullest mailbox comes first. Any key ends this help.";

pub fn help() -> Paragraph<'static> {
    Paragraph::new(HELP)
}

pub fn draw(frame: &mut Frame, area: Rect, mailbox: &MailboxView, history: Option<&History>) {
    let title = format!(" {} ", name(&mailbox.mailbox));
    let block = Block::new().borders(Borders::TOP).title(title.bold());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let status = match &mailbox.standing {
        Standing::Known(status) => status,
        Standing::Unknown { error, .. } => {
            let error = one_line(&printable(error));
            frame.render_widget(Paragraph::new(error).red().wrap(Wrap { trim: true }), inner);
            return;
        }
    };
    let [words, chart] = Layout::vertical([Constraint::Length(4), Constraint::Fill(1)]).areas(inner);
    let width = usize::from(chart.width);
    let points: Vec<_> = history
        .map(|history| history.last(width).collect())
        .unwrap_or_default();
    let seen = Duration::from_secs((points.len() * LOOKS) as u64);
    // The newest stands at the right.
    let points = std::iter::repeat_n(None, width - points.len()).chain(points);
    let mut lines = words_of(status, &mailbox.queued);
    lines.push(Text::from(format!(" used of the minute, the last {}:", short(seen))).dim());
    frame.render_widget(Paragraph::new(lines), words);
    let chart_of = Sparkline::default()
        .data(points.map(SparklineBar::from))
        .absent_value_symbol(" ")
        .max(status.minute.limit)
        .style(colour(&status.minute));
    frame.render_widget(chart_of, chart);
}

fn words_of(status: &Status, queued: &Queued) -> Vec<Text<'static>> {
    let overrides = [
        ("a minute", status.overrides.per_minute),
        ("recipients a day", status.overrides.recipients_per_day),
        ("at once", status.overrides.concurrent),
    ];
    let overrides: Vec<_> = overrides
        .into_iter()
        .filter_map(|(what, limit)| Some(format!("{} {what}", grouped(limit?))))
        .collect();
    let overrides = if overrides.is_empty() {
        "no overrides".into()
    } else {
        format!("overrides: {}", overrides.join(", "))
    };
    let open = counted(status.open, "send");
    let pause = match status.paused_for_ms {
        0 => String::new(),
        ms => format!(", paused for {}", spoken(Duration::from_millis(ms))),
    };
    vec![
        Text::from(format!(" {} windows, {overrides}", status.window)),
        Text::from(format!(" {open} under way{pause}")),
        Text::from(format!(" {}", queue(queued))),
    ]
}

fn queue(queued: &Queued) -> String {
    let waiting = match queued.waiting {
        0 => "nothing waits in the queue".into(),
        waiting => format!("queue: {} waiting", grouped(waiting)),
    };
    let next = queued.next_at.map(|next| format!(", next {}", left(next)));
    let last = queued.last_at.filter(|last| Some(*last) != queued.next_at);
    let last = last.map(|last| format!(", last {}", left(last)));
    let undecided =
        (queued.undecided > 0).then(|| format!("; {} undecided: mailrl queue", grouped(queued.undecided)));
    [Some(waiting), next, last, undecided]
        .into_iter()
        .flatten()
        .collect()
}

fn left(at: u64) -> String {
    let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    match at.saturating_sub(now) {
        0 => "now".into(),
        ms => format!("in {}", spoken(Duration::from_millis(ms))),
    }
}
