//! `mailrl watch`, on a real terminal (tmux) and a real Redis with the module.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::*;
use test_support::Calls;

/// A tmux server of one's own with one window.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn start(folder: &Path, command: &str) -> Self {
        let tmux = Self {
            socket: folder.join("tmux"),
        };
        let output = tmux.ask(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            command,
        ]);
        assert!(output.status.success(), "{output:?}");
        tmux
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments);
        command.env("LC_ALL", "C.UTF-8").output().unwrap()
    }

    fn type_in(&self, keys: &[&str]) {
        let output = self.ask(&[&["send-keys"], keys].concat());
        assert!(output.status.success(), "{output:?}");
    }

    fn screen(&self) -> String {
        String::from_utf8(self.ask(&["capture-pane", "-p"]).stdout).unwrap()
    }

    async fn until_it_shows(&self, text: &str) {
        eventually(&format!("{text:?} on the screen"), || {
            self.screen().contains(text)
        })
        .await;
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

#[tokio::test]
async fn a_mailbox_is_seen_paused_and_resumed_and_redis_may_come_and_go() {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped: tmux is missing (scripts/setup.sh tmux:tmux installs it)");
        return;
    }
    let mut setup = Setup::new().await;
    let mut redis = setup.redis.connection();
    redis.allowed(KEY, "3");
    let mailrl = env!("CARGO_BIN_EXE_mailrl");
    let url = setup.redis.url();
    let end = setup.folder.path().join("end");
    let command = format!("{mailrl} watch --redis {url}; echo $? > {}", end.display());
    let tmux = Tmux::start(setup.folder.path(), &command);
    tmux.until_it_shows("3/9,000").await;
    assert!(tmux.screen().contains(MAILBOX), "{}", tmux.screen());

    tmux.type_in(&["p", "5", "m", "Enter"]);
    tmux.until_it_shows("pause news@example.com for 5 min?").await;
    assert_eq!(redis.status(KEY).paused_for_ms, 0);
    tmux.type_in(&["y"]);
    tmux.until_it_shows("news@example.com: paused until").await;
    assert!((200_000..=300_000).contains(&redis.status(KEY).paused_for_ms));
    run(setup.command("status").arg(MAILBOX))
        .await
        .ends_with(0)
        .says("paused     until");

    tmux.type_in(&["r", "y"]);
    tmux.until_it_shows("not paused any more").await;
    assert_eq!(redis.status(KEY).paused_for_ms, 0);

    tmux.type_in(&["l", "minute 7", "Enter", "y"]);
    tmux.until_it_shows("1/7").await;

    tmux.type_in(&["Escape"]);
    setup.redis.kill();
    tmux.until_it_shows("trying again: Redis at").await;
    setup.redis.restart();
    setup.redis.connection().allowed("mailrl:late@example.com", "1");
    tmux.until_it_shows("late@example.com").await;
    assert!(!tmux.screen().contains("trying again"), "{}", tmux.screen());

    tmux.type_in(&["q"]);
    eventually("the end", || {
        std::fs::read_to_string(&end).is_ok_and(|code| code == "0\n")
    })
    .await;
}

#[tokio::test]
async fn without_a_terminal_it_says_what_there_is_for_programs() {
    let setup = Setup::new().await;
    let run = run(&mut setup.command("watch")).await;
    run.ends_with(2)
        .says("standard output is none")
        .says("mailrl status --json");
    assert_eq!(run.stdout, "");
}
