//! What a reservation costs the server, beside `PING`, `INCR` and the Lua script that it replaces.
//!
//! Server time is what `INFO commandstats` counts; calls a second are what `redis-benchmark` counts.
//! All commands are measured in turn, several rounds long, and medians are shown: machines are
//! noisy, so look at the ratios of one run and not at the microseconds.

use std::process::Command;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use redis::Connection;
use test_support::RedisServer;

const ROUNDS: usize = 5;
const MAILBOXES: &str = "1000";
/// Far more than is asked for here.
const LIMIT: &str = "1000000";
const SCRIPT: &str = include_str!("../tests/lua/check_and_reserve.lua");

/// One at a time over one connection, and 64 in a pipeline over each of 50 connections.
const MODES: [Mode; 2] = [
    Mode {
        name: "one at a time",
        clients: "1",
        pipeline: "1",
        calls: "20000",
    },
    Mode {
        name: "pipelined (64 x 50)",
        clients: "50",
        pipeline: "64",
        calls: "200000",
    },
];

struct Mode {
    name: &'static str,
    clients: &'static str,
    pipeline: &'static str,
    calls: &'static str,
}

/// A command to measure.
struct Subject {
    name: &'static str,
    server: usize,
    /// Its name in `INFO commandstats`.
    stat: &'static str,
    words: Vec<String>,
}

/// One measurement: server time in µs a call, and calls a second.
type Sample = (f64, f64);

fn main() {
    let servers = ["calendar", "rolling"].map(|kind| {
        RedisServer::with_module(["window", kind, "per-minute", LIMIT, "recipients-per-day", LIMIT])
    });
    let mut connections: Vec<Connection> = servers.iter().map(RedisServer::connection).collect();
    for connection in &mut connections {
        fill_day(connection, "mailrl:full");
    }
    let sha: String = redis::cmd("SCRIPT")
        .arg("LOAD")
        .arg(SCRIPT)
        .query(&mut connections[0])
        .expect("the script loads");
    let subjects = subjects(&sha);

    for mode in &MODES {
        let mut samples: Vec<Vec<Sample>> = subjects.iter().map(|_| Vec::new()).collect();
        for round in 0..=ROUNDS {
            eprintln!(
                "{}: {}",
                mode.name,
                if round == 0 {
                    "warming up".into()
                } else {
                    format!("round {round} of {ROUNDS}")
                }
            );
            for (subject, samples) in subjects.iter().zip(&mut samples) {
                let sample = measure(
                    subject,
                    mode,
                    servers[subject.server].port(),
                    &mut connections[subject.server],
                );
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
        print(mode, &subjects, &samples);
    }
}

fn subjects(sha: &str) -> Vec<Subject> {
    let words = |text: &str| text.split(' ').map(String::from).collect();
    // A lease of 1 ms stands for a caller that commits: the reservation is closed before the next one.
    let closed = "MAILRL.RESERVE mailrl:__rand_int__ 1 LEASE 1";
    let everything = "MAILRL.RESERVE all:__rand_int__ 1 LEASE 1 CONCURRENT 1024 BULK";
    let left_open = "MAILRL.RESERVE open:__rand_int__ 1";
    let denied = "MAILRL.RESERVE mailrl:full 1 PERDAY 1";
    let subject = |name, server, stat, text: &str| Subject {
        name,
        server,
        stat,
        words: words(text),
    };
    vec![
        subject("PING", 0, "ping", "PING"),
        subject("INCR", 0, "incr", "INCR counter:__rand_int__"),
        subject(
            "Lua script",
            0,
            "evalsha",
            &format!("EVALSHA {sha} 2 m:__rand_int__ d:__rand_int__ 1 {LIMIT} {LIMIT}"),
        ),
        subject("RESERVE, calendar", 0, "mailrl.reserve", closed),
        subject("RESERVE, rolling", 1, "mailrl.reserve", closed),
        subject(
            "RESERVE, rolling, CONCURRENT, BULK",
            1,
            "mailrl.reserve",
            everything,
        ),
        subject(
            "RESERVE, calendar, never committed",
            0,
            "mailrl.reserve",
            left_open,
        ),
        subject(
            "RESERVE, rolling, never committed",
            1,
            "mailrl.reserve",
            left_open,
        ),
        subject("RESERVE, calendar, denied", 0, "mailrl.reserve", denied),
        subject("RESERVE, rolling, denied", 1, "mailrl.reserve", denied),
    ]
}

/// Uses up a whole day of a mailbox, so that it is denied as long as the benchmark lasts.
fn fill_day(connection: &mut Connection, key: &str) {
    let mut reserve = redis::cmd("MAILRL.RESERVE");
    let _: redis::Value = reserve
        .arg(key)
        .arg(1)
        .arg("PERDAY")
        .arg(1)
        .query(connection)
        .expect("the first is allowed");
}

fn measure(subject: &Subject, mode: &Mode, port: u16, connection: &mut Connection) -> Sample {
    let _: () = redis::cmd("CONFIG")
        .arg("RESETSTAT")
        .query(connection)
        .expect("statistics are reset");
    let output = Command::new("redis-benchmark")
        .args([
            "-p",
            &port.to_string(),
            "-c",
            mode.clients,
            "-P",
            mode.pipeline,
            "-n",
            mode.calls,
            "-r",
            MAILBOXES,
            "--csv",
        ])
        .args(&subject.words)
        .output()
        .expect("redis-benchmark runs (package redis-tools)");
    let csv = String::from_utf8_lossy(&output.stdout).into_owned();
    let calls_a_second = csv
        .lines()
        .last()
        .and_then(|line| line.split("\",\"").nth(1)?.parse().ok());
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(connection)
        .expect("statistics");
    let prefix = format!("cmdstat_{}:", subject.stat);
    let line = stats
        .lines()
        .find(|line| line.starts_with(&prefix))
        .expect("the command was called");
    let field = |name: &str| {
        let text = line
            .split([':', ','])
            .find_map(|field| field.strip_prefix(name))
            .expect("a known field");
        text.parse::<f64>().expect("a number")
    };
    assert!(
        field("failed_calls=") + field("rejected_calls=") < 1.0,
        "{} failed: {line}",
        subject.name
    );
    (
        field("usec=") / field("calls="),
        calls_a_second.expect("redis-benchmark tells calls a second"),
    )
}

fn print(mode: &Mode, subjects: &[Subject], samples: &[Vec<Sample>]) {
    let times: Vec<[f64; 3]> = samples
        .iter()
        .map(|all| spread(all.iter().map(|sample| sample.0)))
        .collect();
    let rates: Vec<[f64; 3]> = samples
        .iter()
        .map(|all| spread(all.iter().map(|sample| sample.1)))
        .collect();
    let reserve = subjects
        .iter()
        .position(|subject| subject.name == "RESERVE, calendar")
        .unwrap_or_default();
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header([
        mode.name,
        "server time, µs",
        "least to most",
        "against RESERVE",
        "calls a second",
        "against RESERVE",
    ]);
    for (place, subject) in subjects.iter().enumerate() {
        let ([least, time, most], [_, rate, _]) = (times[place], rates[place]);
        table.add_row([
            subject.name.to_owned(),
            format!("{time:.2}"),
            format!("{least:.2} to {most:.2}"),
            format!("{:.2}", time / times[reserve][1]),
            format!("{rate:.0}"),
            format!("{:.2}", rate / rates[reserve][1]),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}

/// The least, the median and the most.
fn spread(samples: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut sorted: Vec<f64> = samples.collect();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}
