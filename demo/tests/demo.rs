//! The demo itself, end to end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The command `mailrl` of these sources: a test of this crate does not build it.
fn mailrl() -> PathBuf {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .current_dir(ROOT)
        .args(["build", "--quiet", "--package", "mailrl-cli"])
        .status()
        .unwrap();
    assert!(built.success());
    Path::new(env!("CARGO_BIN_EXE_demo")).with_file_name("mailrl")
}

/// The demo, with a folder of its own for what is temporary.
fn demo(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command
        .current_dir(ROOT)
        .env("TMPDIR", temporary)
        .env("MAILRL_REDIS", "redis://127.0.0.1:1")
        .arg("--module")
        .arg(test_support::module_path())
        .arg("--mailrl")
        .arg(mailrl())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().unwrap().next().is_none()
}

#[test]
fn the_quick_one_sends_each_mail_once_and_clears_up() {
    let temporary = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let output = demo(temporary.path()).arg("--quick").output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(start.elapsed() < Duration::from_mins(1), "{text}");
    assert!(
        text.contains("each of the 8 mails arrived exactly once"),
        "{text}"
    );
    let row = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("│ {name} ")))
            .unwrap_or_else(|| panic!("no {name} in {text}"));
        line.split(name)
            .nth(1)
            .unwrap()
            .split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(row("sent"), [6, 2, 6], "{text}");
    assert_eq!(row("429s that Graph gave"), [0, 0, 0], "{text}");
    assert_eq!(
        row("most mails from one mailbox in any 60 s"),
        [6, 1, 6],
        "{text}"
    );
    assert!(is_empty(temporary.path()));
}

/// The processes that this one has started, and those that they have.
fn descendants(pid: u32) -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let processes = Path::new("/proc").read_dir().unwrap();
    let all: Vec<u32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    all.into_iter()
        .filter(|one| parent_of(*one) == Some(pid))
        .collect()
}

fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    })
}

fn signal(child: &Child, signal: libc::c_int) {
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: kill(2) takes no pointers, and the process is a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn ends_in_good_order(by: libc::c_int) {
    let temporary = tempfile::tempdir().unwrap();
    let demo = demo(temporary.path()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    // One Redis and two workers.
    let children = loop {
        let children = descendants(demo.id());
        if children.len() == 3 {
            break children;
        }
        assert!(Instant::now() < deadline, "it does not start its three processes");
        std::thread::sleep(Duration::from_millis(5));
    };
    std::thread::sleep(Duration::from_millis(700));
    assert!(!is_empty(temporary.path()));
    signal(&demo, by);
    let start = Instant::now();
    let output = demo.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(is_empty(temporary.path()), "{}", text(&output));
    std::thread::sleep(Duration::from_millis(200));
    for child in children {
        assert!(!is_running(child), "{child} is still running");
    }
}

#[test]
fn ctrl_c_leaves_no_process_and_no_folder() {
    ends_in_good_order(libc::SIGINT);
}

#[test]
fn sigterm_leaves_no_process_and_no_folder() {
    ends_in_good_order(libc::SIGTERM);
}

#[test]
fn what_is_missing_is_told_before_anything_is_started() {
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path())
        .args(["--mail", "no-such-folder"])
        .output()
        .unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("there is no no-such-folder"), "{text}");
    let output = demo(temporary.path())
        .args(["--mail", env!("CARGO_MANIFEST_DIR")])
        .output()
        .unwrap();
    assert!(self::text(&output).contains("no mail in"), "{output:?}");
    assert!(is_empty(temporary.path()));
}
