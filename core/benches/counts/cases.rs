//! The calls that are counted. Each makes its mailbox first; only what stands in `measured` counts.

use std::hint::black_box;

use mailrl_core::{
    Config, Lane, MOST_OPEN, Override, Reason, Request, ReservationId, Verdict, WindowKind, Wish, arguments,
    commit, override_limits, release, reserve, status,
};

use crate::callgrind::measured;

pub struct Case {
    pub name: &'static str,
    pub run: fn(),
}

/// In the order in which the file lists them.
pub const CASES: [Case; 13] = [
    case("reserve allowed, calendar", || {
        allowed(WindowKind::Calendar, PLAIN);
    }),
    case("reserve allowed, rolling", || {
        allowed(WindowKind::Rolling, PLAIN);
    }),
    case("reserve allowed, everything on", everything_on),
    case("reserve allowed, 1024 open", || {
        let mut mailbox = Mailbox::new(WindowKind::Rolling, MOST_OPEN);
        mailbox.config.per_minute = 1_000_000;
        mailbox.allow(PLAIN);
    }),
    case("reserve denied, minute", || {
        denied(Reason::Minute, |request| request.wish.per_minute = Some(OPEN));
    }),
    case("reserve denied, day", || {
        denied(Reason::Day, |request| request.wish.per_day = Some(OPEN));
    }),
    case("reserve denied, concurrent", || {
        denied(Reason::Concurrent, |request| request.wish.concurrent = Some(OPEN));
    }),
    case("release, calendar", || {
        Mailbox::new(WindowKind::Calendar, 3).release();
    }),
    case("release, rolling", || {
        Mailbox::new(WindowKind::Rolling, 3).release();
    }),
    case("commit, calendar", || {
        Mailbox::new(WindowKind::Calendar, 3).commit();
    }),
    case("commit, rolling", || {
        Mailbox::new(WindowKind::Rolling, 3).commit();
    }),
    case("status, rolling", || {
        let mailbox = Mailbox::new(WindowKind::Rolling, 3);
        let status = measured(|| status(black_box(&mailbox.value), &mailbox.config, LATER));
        assert_eq!(status.expect("a value of ours").open, 3);
    }),
    case("decode the arguments of reserve", decode),
];

/// When what is in use came to be: the start of a minute.
const NOW: u64 = 1_800_000_000_000;
/// When a call is counted: the same minute, but some slots on where windows roll.
const LATER: u64 = NOW + 2_500;
/// How many reservations are open where a call is to be denied.
const OPEN: u32 = 3;
const PLAIN: Request = Request {
    recipients: 1,
    wish: Wish {
        per_minute: None,
        per_day: None,
        concurrent: None,
    },
    lane: Lane::Normal,
    lease_ms: 120_000,
};

const fn case(name: &'static str, run: fn()) -> Case {
    Case { name, run }
}

/// A mailbox in use.
struct Mailbox {
    value: Vec<u8>,
    config: Config,
    last: ReservationId,
}

impl Mailbox {
    /// With so many open reservations, from 1.
    fn new(kind: WindowKind, open: usize) -> Self {
        let config = Config {
            kind,
            ..Config::default()
        };
        let plenty = Config {
            per_minute: 1_000_000,
            ..config
        };
        let mut value = Vec::new();
        let mut last = None;
        for _ in 0..open {
            let answer = reserve(&mut value, &plenty, &PLAIN, NOW).expect("a value of ours");
            last = Some(id(&answer.verdict));
        }
        Self {
            value,
            config,
            last: last.expect("one is open"),
        }
    }

    fn reserve(&mut self, request: Request) -> Verdict {
        let Self { value, config, .. } = self;
        let answer = measured(|| reserve(black_box(value), black_box(config), black_box(&request), LATER));
        answer.expect("a value of ours").verdict
    }

    fn allow(&mut self, request: Request) {
        id(&self.reserve(request));
    }

    fn release(&mut self) {
        let Self { value, config, last } = self;
        let changes = measured(|| release(black_box(value), config.kind, black_box(*last), LATER));
        changes.expect("a value of ours").expect("it was open");
    }

    fn commit(&mut self) {
        let Self { value, config, last } = self;
        let changes = measured(|| commit(black_box(value), config.kind, black_box(*last), LATER));
        changes.expect("a value of ours").expect("it was open");
    }
}

fn id(verdict: &Verdict) -> ReservationId {
    match verdict {
        Verdict::Allowed(id) => *id,
        other => panic!("allowed was expected, not {other:?}"),
    }
}

fn allowed(kind: WindowKind, request: Request) {
    Mailbox::new(kind, 3).allow(request);
}

/// Rolling windows, turns, a mail in bulk that asks for every limit, and the operator's overrides.
fn everything_on() {
    let mut mailbox = Mailbox::new(WindowKind::Rolling, 3);
    let limits = Wish {
        per_minute: Some(20),
        per_day: Some(8_000),
        concurrent: Some(10),
    };
    override_limits(
        &mut mailbox.value,
        WindowKind::Rolling,
        Override::Set(limits),
        NOW,
    )
    .expect("a value of ours");
    mailbox.allow(Request {
        wish: limits,
        lane: Lane::Bulk,
        ..PLAIN
    });
}

/// As many are open, and used up, as the request is made to ask for.
fn denied(expected: Reason, ask: impl Fn(&mut Request)) {
    let mut request = PLAIN;
    ask(&mut request);
    match Mailbox::new(WindowKind::Rolling, OPEN as usize).reserve(request) {
        Verdict::Denied { reason, .. } => assert_eq!(reason, expected),
        other => panic!("denied was expected, not {other:?}"),
    }
}

fn decode() {
    let words = "3 PERMINUTE 25 PERDAY 9000 CONCURRENT 3 LEASE 30000 BULK";
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    let request = measured(|| arguments::reserve(black_box(&words).iter().copied()));
    assert_eq!(request.expect("it is right").lease_ms, 30_000);
}
