//! How long a mail is held up by the question whether it may go out, whatever Redis does; and how
//! soon mails are counted again once Redis is back.
//!
//! Both stand beside what is promised. A busy machine adds to all of it.

#[path = "../tests/support/other_program.rs"]
mod other_program;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use mailrl_client::{Decision, Limits, MailRateLimiter, Mailbox, RateLimiterConfig};
use other_program::{HTTP, OtherProgram};
use test_support::{RedisServer, free_port};
use tokio::time::sleep;

/// What `RateLimiterConfig` promises unless told otherwise.
const DEADLINE: Duration = Duration::from_millis(100);

/// How soon Redis's return is noticed at the latest.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

const CALLS: usize = 300;
const PAUSE_BETWEEN_CALLS: Duration = Duration::from_millis(10);

/// How often Redis goes and comes back.
const OUTAGES: u32 = 6;

/// The shortest outage, long enough for the client to ask only once a second by then; each further
/// one is a step longer, so that the returns are spread over that second.
const SHORTEST_OUTAGE: Duration = Duration::from_millis(1_200);
const STEP: Duration = Duration::from_millis(170);

#[tokio::main]
async fn main() {
    let calls = [
        ("up", while_up().await),
        ("frozen", while_frozen().await),
        ("killed", while_killed().await),
        ("a silent port", on_a_silent_port().await),
        ("another program's port", on_the_port_of_another_program().await),
        ("without the module", without_the_module().await),
    ];
    print_calls(&calls);
    let returns = [
        ("frozen, then thawed", returns_of_a_frozen_redis().await),
        ("killed, then restarted", returns_of_a_killed_redis().await),
    ];
    print_returns(&returns);
}

/// What many calls in a row came to.
#[derive(Default)]
struct Calls {
    took: Vec<Duration>,
    /// Each answer, and how often it was given; in the order in which they first came.
    answers: Vec<(&'static str, usize)>,
}

impl Calls {
    fn add(&mut self, took: Duration, decision: &Decision) {
        self.took.push(took);
        let answer = match decision {
            Decision::Allowed(_) => "allowed",
            Decision::Denied(_) => "denied",
            Decision::TooLarge(_) => "too large",
            Decision::FailOpen(failure) => failure.cause.as_str(),
        };
        match self.answers.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, count)) => *count += 1,
            None => self.answers.push((answer, 1)),
        }
    }
}

async fn while_up() -> Calls {
    let server = server();
    let limiter = limiter_in_touch_with(&server).await;
    calls("Redis is up", &limiter).await
}

async fn while_frozen() -> Calls {
    let server = server();
    let limiter = limiter_in_touch_with(&server).await;
    server.freeze();
    calls("Redis is frozen", &limiter).await
}

async fn while_killed() -> Calls {
    let mut server = server();
    let limiter = limiter_in_touch_with(&server).await;
    server.kill();
    calls("Redis is killed", &limiter).await
}

async fn on_a_silent_port() -> Calls {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("a bound address").port();
    calls("The port takes connections and says nothing", &limiter(port)).await
}

async fn on_the_port_of_another_program() -> Calls {
    let port = free_port();
    let program = OtherProgram::start(port, HTTP).await;
    let calls = calls("A web server has the port", &limiter(port)).await;
    program.stop().await;
    calls
}

async fn without_the_module() -> Calls {
    let server = RedisServer::builder().start();
    calls("Redis has no module", &limiter(server.port())).await
}

fn server() -> RedisServer {
    RedisServer::with_module(["window", "rolling"])
}

fn limiter(port: u16) -> MailRateLimiter {
    let config = RateLimiterConfig::new(format!("redis://127.0.0.1:{port}"));
    MailRateLimiter::new(config).expect("a valid configuration")
}

/// A limiter whose connection stands, as in a process that has run for a while.
async fn limiter_in_touch_with(server: &RedisServer) -> MailRateLimiter {
    let limiter = limiter(server.port());
    first_answer(limiter.clone()).await;
    limiter
}

async fn calls(state: &str, limiter: &MailRateLimiter) -> Calls {
    eprintln!("{state}: {CALLS} calls");
    let mut calls = Calls::default();
    for _ in 0..CALLS {
        let start = Instant::now();
        let decision = ask(limiter).await;
        calls.add(start.elapsed(), &decision);
        settle(limiter, decision).await;
        sleep(PAUSE_BETWEEN_CALLS).await;
    }
    calls
}

async fn ask(limiter: &MailRateLimiter) -> Decision {
    let mailbox = Mailbox::new("orders@example.com");
    limiter.check_and_reserve(&mailbox, 1, &Limits::default()).await
}

/// Gives back what was reserved, so that the next mail finds room.
async fn settle(limiter: &MailRateLimiter, decision: Decision) {
    if let Decision::Allowed(reservation) = decision {
        // A Redis that went away in between cannot be told.
        let _ = limiter.release(&reservation).await;
    }
}

/// Asks again and again, and says when Redis itself answered first.
async fn first_answer(limiter: MailRateLimiter) -> Instant {
    loop {
        let decision = ask(&limiter).await;
        if !matches!(decision, Decision::FailOpen(_)) {
            let answered = Instant::now();
            settle(&limiter, decision).await;
            return answered;
        }
        sleep(PAUSE_BETWEEN_CALLS).await;
    }
}

/// From the moment when the server goes on.
async fn returns_of_a_frozen_redis() -> Vec<Duration> {
    let server = server();
    let limiter = limiter_in_touch_with(&server).await;
    let mut returns = Vec::new();
    for (number, outage) in outages() {
        eprintln!("Redis is frozen and thawed: {number} of {OUTAGES}");
        server.freeze();
        let answered = tokio::spawn(first_answer(limiter.clone()));
        sleep(outage).await;
        let back = Instant::now();
        server.thaw();
        returns.push(after(back, answered.await));
    }
    returns
}

/// From the moment when the server takes connections again.
async fn returns_of_a_killed_redis() -> Vec<Duration> {
    let mut server = server();
    let limiter = limiter_in_touch_with(&server).await;
    let mut returns = Vec::new();
    for (number, outage) in outages() {
        eprintln!("Redis is killed and restarted: {number} of {OUTAGES}");
        server.kill();
        let answered = tokio::spawn(first_answer(limiter.clone()));
        sleep(outage).await;
        server.restart();
        let back = Instant::now();
        returns.push(after(back, answered.await));
    }
    returns
}

fn outages() -> impl Iterator<Item = (u32, Duration)> {
    (1..=OUTAGES).map(|number| (number, SHORTEST_OUTAGE + STEP * (number - 1)))
}

/// Zero if the answer came before the server was seen to be back.
fn after(back: Instant, answered: Result<Instant, tokio::task::JoinError>) -> Duration {
    answered
        .expect("the calls go on until they are answered")
        .saturating_duration_since(back)
}

fn print_calls(states: &[(&str, Calls)]) {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header([
        "Redis is",
        "median, ms",
        "p99, ms",
        "max, ms",
        "promised, ms",
        "answers",
    ]);
    for (state, calls) in states {
        let answers = calls
            .answers
            .iter()
            .map(|(answer, count)| format!("{count} {answer}"));
        table.add_row([
            (*state).to_owned(),
            format!("{:.3}", milliseconds(percentile(&calls.took, 50))),
            format!("{:.3}", milliseconds(percentile(&calls.took, 99))),
            format!("{:.3}", milliseconds(percentile(&calls.took, 100))),
            DEADLINE.as_millis().to_string(),
            answers.collect::<Vec<_>>().join(", "),
        ]);
    }
    align(&mut table, 1..=4);
    println!("{table}");
}

fn print_returns(ways: &[(&str, Vec<Duration>)]) {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header([
        "Redis was",
        "answers again after, median, ms",
        "max, ms",
        "promised, ms",
        "outages",
    ]);
    for (way, returns) in ways {
        table.add_row([
            (*way).to_owned(),
            format!("{:.0}", milliseconds(percentile(returns, 50))),
            format!("{:.0}", milliseconds(percentile(returns, 100))),
            NOTICED_WITHIN.as_millis().to_string(),
            returns.len().to_string(),
        ]);
    }
    align(&mut table, 1..=4);
    println!("{table}");
}

fn align(table: &mut Table, columns: std::ops::RangeInclusive<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The least sample that so many percent of all do not exceed.
fn percentile(samples: &[Duration], percent: usize) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort();
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
