//! One case in a process of its own, under callgrind.

use std::env;
use std::hint::black_box;
use std::process::Command;

/// The option with which this program is told to run one case and nothing else.
pub const CASE: &str = "--case";

/// What callgrind counts in: nothing before it and nothing after it.
#[inline(never)]
pub fn measured<T>(call: impl FnOnce() -> T) -> T {
    black_box(call())
}

/// The instructions within [`measured`] when the case runs.
pub fn count(case: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        // The name as the compiler mangles it, whichever way, holds this word.
        .args(["--collect-atstart=no", "--toggle-collect=*callgrind*measured*"])
        .arg(env::current_exe().expect("the path of this program"))
        .args([CASE, case])
        .output()
        .expect("valgrind runs (package valgrind)");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case} failed under callgrind:\n{log}");
    let count = log
        .lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
        .unwrap_or_default();
    assert!(count > 0, "callgrind counted nothing in {case}:\n{log}");
    count
}
