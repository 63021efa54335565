//! The program: starts on a free port, serves, and ends with a table.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use common::{Sender, http};

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn it_prints_its_address_and_at_sigterm_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let port_file = directory.path().join("port");
    let mut program = Killed(
        Command::new(env!("CARGO_BIN_EXE_graph-sim"))
            .args([
                "--port",
                "0",
                "--messages",
                "2",
                "--latency",
                "1-2",
                "--port-file",
            ])
            .arg(&port_file)
            .args([
                "--fault",
                r#"{"at": "accepted", "then": {"answer": {"status": 504}}}"#,
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut output = BufReader::new(program.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let url = line
        .trim()
        .strip_prefix("graph-sim listens on ")
        .unwrap()
        .to_owned();
    let port = std::fs::read_to_string(&port_file).unwrap();
    assert_eq!(url, format!("http://127.0.0.1:{port}"));

    let sender = Sender::to(url.clone()).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(sender.status("a@example.net, b@example.net").await);
    }
    assert_eq!(statuses, [504, 202, 429]);
    assert_eq!(
        http()
            .get(format!("{url}/sim/report"))
            .send()
            .await
            .unwrap()
            .status(),
        200
    );

    let pid = i32::try_from(program.0.id()).unwrap();
    // SAFETY: kill(2) takes no pointers; the process is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    let mut table = String::new();
    output.read_to_string(&mut table).unwrap();
    assert!(program.0.wait().unwrap().success());
    let row = table
        .lines()
        .find(|row| row.starts_with("news@example.com"))
        .unwrap();
    let numbers: Vec<_> = row.split_whitespace().skip(1).collect();
    assert_eq!(numbers, ["2", "4", "1", "0", "0", "0", "1", "2", "4", "1"]);
    assert!(
        table.starts_with("mailbox           accepted  recipients  429 minute"),
        "{table}"
    );
    assert!(table.ends_with("token requests: 1\n"), "{table}");
}

#[test]
fn a_wrong_option_is_named() {
    for (option, value) in [
        ("--latency", "9-1"),
        ("--fault", "{}"),
        ("--message-window", "-1"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_graph-sim"))
            .arg(format!("{option}={value}"))
            .output()
            .unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(option), "{error}");
    }
}
