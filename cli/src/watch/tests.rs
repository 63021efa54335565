//! Keys and pictures, without a terminal.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::draw;
use super::state::{Outcome, State};
use super::wish::Change;
use crate::overview::{MailboxView, Overview, Queued, Standing};
use crate::server::reply::Overrides;
use crate::status::{Status, Window};

fn mailbox(name: &str, minute: u64, day: u64) -> MailboxView {
    let window = |used, limit| Window {
        used,
        limit,
        room_in_ms: if used < limit { 0 } else { 12_000 },
    };
    MailboxView {
        key: format!("mailrl:{name}").into_bytes(),
        mailbox: name.into(),
        standing: Standing::Known(Status {
            window: "rolling".into(),
            minute: window(minute, 25),
            day: window(day, 9_000),
            open: 2,
            paused_for_ms: 0,
            overrides: Overrides::default(),
        }),
        queued: Queued::default(),
    }
}

fn watching(mailboxes: Vec<MailboxView>) -> State {
    let mut state = State::default();
    state.saw(Ok(Overview {
        mailboxes,
        missing: Vec::new(),
    }));
    state
}

fn three() -> State {
    watching(vec![
        mailbox("a@example.com", 1, 10),
        mailbox("b@example.com", 25, 30),
        mailbox("c@example.net", 2, 8_900),
    ])
}

fn press(state: &mut State, code: KeyCode) -> Outcome {
    state.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_in(state: &mut State, text: &str) {
    for character in text.chars() {
        assert_eq!(press(state, KeyCode::Char(character)), Outcome::Nothing);
    }
}

fn names(state: &State) -> Vec<&str> {
    (0..state.rows())
        .map(|row| &*state.mailbox(row).mailbox)
        .collect()
}

fn chosen(state: &State) -> &str {
    &state.chosen().unwrap().mailbox
}

fn picture(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_fullest_comes_first_and_the_choice_stays_with_its_mailbox() {
    let mut state = three();
    assert_eq!(names(&state), ["b@example.com", "c@example.net", "a@example.com"]);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Down);
    assert_eq!(chosen(&state), "a@example.com");
    state.saw(Ok(Overview {
        mailboxes: vec![mailbox("a@example.com", 24, 10), mailbox("b@example.com", 3, 30)],
        missing: Vec::new(),
    }));
    assert_eq!(names(&state), ["a@example.com", "b@example.com"]);
    assert_eq!((chosen(&state), state.chosen_row()), ("a@example.com", 0));
}

#[test]
fn a_search_narrows_the_list_until_it_is_ended() {
    let mut state = three();
    type_in(&mut state, "/.COM");
    assert_eq!(names(&state), ["b@example.com", "a@example.com"]);
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.rows(), 2);
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.rows(), 3);
    type_in(&mut state, "/nobody");
    assert!(picture(&state, 80, 24).contains("No mailbox has this in its name"));
    press(&mut state, KeyCode::Enter);
    for key in ['p', 'r', 'l'] {
        press(&mut state, KeyCode::Char(key));
    }
    assert_eq!(press(&mut state, KeyCode::Char('q')), Outcome::Quit);
}

#[test]
fn nothing_is_changed_without_a_yes() {
    let mut state = three();
    for text in ["pn", "r", "p5m"] {
        type_in(&mut state, text);
        press(&mut state, KeyCode::Enter);
        assert_eq!(press(&mut state, KeyCode::Enter), Outcome::Nothing);
        press(&mut state, KeyCode::Esc);
        press(&mut state, KeyCode::Esc);
    }
    type_in(&mut state, "p90s");
    press(&mut state, KeyCode::Enter);
    assert!(picture(&state, 80, 24).contains("y yes  n no  pause b@example.com for 1 min 30 s?"));
    let Outcome::Do(wish) = press(&mut state, KeyCode::Char('y')) else {
        panic!("no wish");
    };
    assert_eq!(wish.key, b"mailrl:b@example.com");
    assert_eq!(wish.change, Change::Pause(std::time::Duration::from_secs(90)));
    type_in(&mut state, "r");
    assert!(
        matches!(press(&mut state, KeyCode::Char('y')), Outcome::Do(wish) if wish.change == Change::Resume)
    );
}

#[test]
fn limits_that_are_none_are_told_and_can_be_mended() {
    let mut state = three();
    type_in(&mut state, "lminute 0");
    press(&mut state, KeyCode::Enter);
    assert!(picture(&state, 120, 24).contains("minute takes a number from 1"));
    press(&mut state, KeyCode::Backspace);
    type_in(&mut state, "7");
    press(&mut state, KeyCode::Enter);
    assert!(picture(&state, 80, 24).contains("hold b@example.com to 7 a minute?"));
}

#[test]
fn a_list_in_80_by_24_has_room_for_all_that_matters() {
    let mut full = mailbox("news@example.com", 25, 9_000);
    if let Standing::Known(status) = &mut full.standing {
        status.paused_for_ms = 600_000;
    }
    full.queued.waiting = 141;
    full.queued.undecided = 1;
    let picture = picture(&watching(vec![full, mailbox("a@b", 0, 1)]), 80, 24);
    let line = |text: &str| {
        picture
            .lines()
            .find(|line| line.contains(text))
            .unwrap()
            .to_owned()
    };
    let row = line("▶");
    for text in [
        "news@example.com",
        "████ 25/25",
        "████ 9,000/9,000",
        "12s",
        "10m00s",
        " 2",
        "141!",
    ] {
        assert!(row.contains(text), "{text} in {picture}");
    }
    assert!(line(" a@b ").contains("░░░░ 0/25"), "{picture}");
    assert!(line(" a@b ").contains("█░░░ 1/9,000"), "{picture}");
    assert!(
        picture.contains("queue: 141 waiting; 1 undecided: mailrl queue"),
        "{picture}"
    );
    assert!(
        picture.contains("2 sends under way, paused for 10 min"),
        "{picture}"
    );
}

#[test]
fn the_line_of_the_last_minutes_grows_with_what_was_seen() {
    let look = || mailbox("b@example.com", 25, 30);
    let mut state = watching(vec![look()]);
    let chart = |state: &State| picture(state, 80, 24).matches('█').count();
    let before = chart(&state);
    for _ in 0..10 {
        state.saw(Ok(Overview {
            mailboxes: vec![look()],
            missing: Vec::new(),
        }));
    }
    assert_eq!(chart(&state), before + 2 * 3);
}

#[test]
fn names_cannot_steer_the_terminal() {
    let picture = picture(&watching(vec![mailbox("a\u{1b}[2J\nb", 1, 1)]), 80, 24);
    assert!(picture.contains("a\\u{1b}[2J\\nb"), "{picture}");
}

#[test]
fn trouble_is_told_what_was_seen_stays_and_comes_back() {
    let mut state = three();
    state.done(Ok("b@example.com: not paused any more".into()));
    state.saw(Err("Redis at 127.0.0.1:1 cannot be reached".into()));
    let told = picture(&state, 80, 24);
    assert!(told.contains("trying again: Redis at 127.0.0.1:1"), "{told}");
    assert!(told.contains("c@example.net"), "{told}");
    state.saw(Ok(Overview::default()));
    assert!(!picture(&state, 80, 24).contains("trying again"));
}

#[test]
fn a_key_that_is_no_mailbox_says_so_and_stands_last() {
    let mut foreign = mailbox("0@example.com", 0, 0);
    foreign.standing = Standing::Unknown {
        reason: "wrong_type",
        error: "its key holds something that is not a mailbox's state".into(),
    };
    let mut state = watching(vec![foreign, mailbox("a@b", 0, 0)]);
    assert_eq!(names(&state), ["a@b", "0@example.com"]);
    press(&mut state, KeyCode::End);
    assert!(picture(&state, 80, 24).contains("its key holds something"));
}

#[test]
fn the_smallest_and_the_largest_screen_can_be_drawn() {
    let many = (0..300)
        .map(|n| mailbox(&format!("{n}@example.com"), n % 26, n))
        .collect();
    let mut state = watching(many);
    for (width, height) in [(1, 1), (20, 5), (80, 24), (250, 80)] {
        picture(&state, width, height);
    }
    press(&mut state, KeyCode::End);
    assert!(picture(&state, 80, 24).contains(chosen(&state)));
    type_in(&mut state, "?");
    assert!(picture(&state, 80, 24).contains("end its pause"));
}
