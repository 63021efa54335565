//! `mailrl completions`, `mailrl man`.

mod common;

use common::*;

#[tokio::test]
async fn completions_know_subcommands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let run = run(bare_command(folder.path()).args(["completions", shell])).await;
        run.ends_with(0).says("enqueue").says("per-minute");
        assert_eq!(run.stderr, "");
    }
}

#[tokio::test]
async fn each_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(bare_command(folder.path()).args(["man", "pages/man1"])).await;
    run.ends_with(0);
    assert_eq!(run.stderr, "pages/man1: written\n");
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages/man1").join(name)).unwrap();
    assert!(page("mailrl.1").contains("mailrl\\-worker(1)"));
    assert!(page("mailrl-limits.1").contains("Recipients a day, from 1"));
    assert!(page("mailrl-queue-show.1").contains(".SH"));
}

#[tokio::test]
async fn pages_that_cannot_be_written_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pages"), "").unwrap();
    let run = run(bare_command(folder.path()).args(["man", "pages/man1"])).await;
    run.ends_with(1);
    assert!(run.stderr.starts_with("pages/man1: "), "{run:?}");
}
