//! How many instructions the core takes for each kind of call, counted by callgrind and held against
//! `counts.txt`. Unlike a time, a count is the same on a busy machine, so a build can fail over it.
//!
//! `make counts` runs this; `make counts ACCEPT=1` takes what was counted into the file.

mod callgrind;
mod cases;
mod compare;

use std::process::{Command, ExitCode};
use std::{env, fs};

use cases::CASES;
use compare::{Counts, compare};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts/counts.txt");

fn main() -> ExitCode {
    let words: Vec<String> = env::args().collect();
    if let [_, option, name] = words.as_slice()
        && option == callgrind::CASE
    {
        let case = CASES.iter().find(|case| case.name == name);
        (case.expect("a case of this name").run)();
        return ExitCode::SUCCESS;
    }

    let now = Counts {
        compiler: compiler(),
        cases: CASES
            .iter()
            .map(|case| (case.name.to_owned(), callgrind::count(case.name)))
            .collect(),
    };
    if env::var("ACCEPT").is_ok_and(|accept| accept == "1") {
        fs::write(FILE, now.to_string()).expect("the file can be written");
        println!("written to {FILE}\n{now}");
        return ExitCode::SUCCESS;
    }
    let text = fs::read_to_string(FILE).expect("the file is there: make counts ACCEPT=1 writes it");
    let before = text.parse().unwrap_or_else(|error| panic!("{FILE}: {error}"));
    let comparison = compare(&before, &now);
    println!("{comparison}");
    if comparison.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The compiler and what it builds for: another one makes other instructions.
fn compiler() -> String {
    let output = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .arg("--version")
        .output()
        .expect("rustc tells its version");
    let version = String::from_utf8_lossy(&output.stdout);
    format!("{}, {}", version.trim(), env::consts::ARCH)
}
