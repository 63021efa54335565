//! `mailrl simulate`.

mod common;

use common::*;

async fn simulate(folder: &std::path::Path, words: &str) -> Run {
    let words = words.split_whitespace();
    run(bare_command(folder).arg("simulate").args(words)).await
}

#[tokio::test]
async fn a_campaign_is_played_without_redis_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--backlog 2000 --plot campaign.svg";
    let run = simulate(folder.path(), words).await;
    run.ends_with(0);
    let table: Vec<_> = run
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert!(table.contains(&"mails sent 2000 of 2000".into()), "{run:?}");
    assert!(table.contains(&"most messages in any 60 s 25".into()), "{run:?}");
    run.says("drained after").says("1 h 2").says("waited");
    assert_eq!(run.stderr, "campaign.svg: drawn\n");
    let drawing = std::fs::read_to_string(folder.path().join("campaign.svg")).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.contains("polyline"));
    // The same flags, the same figures.
    assert_eq!(simulate(folder.path(), words).await.stdout, run.stdout);
}

#[tokio::test]
async fn each_flag_reaches_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--backlog 300 --bulk 50 --recipients 1..3 --per-minute 40 --recipients-per-day 2000 \
        --window calendar --no-pacing --spread 30s --pods 3x4 --concurrent 3 --send-time 100ms..3s \
        --urgent-every 1m --seed 7";
    let run = simulate(folder.path(), words).await;
    run.ends_with(0).says("urgent").says("bulk").says("normal");
    for other in [
        ("--bulk 50", "--bulk 10"),
        ("1..3", "2"),
        ("--per-minute 40", "--per-minute 41"),
        ("calendar", "rolling"),
        ("--no-pacing", ""),
        ("--spread 30s", "--spread 20s"),
        ("3x4", "1x2"),
        ("--concurrent 3", "--concurrent 2"),
        ("100ms..3s", "1s"),
        ("1m", "2m"),
        ("--seed 7", "--called-off-after 2m"),
    ] {
        let changed = simulate(folder.path(), &words.replace(other.0, other.1)).await;
        changed.ends_with(0);
        assert_ne!(changed.stdout, run.stdout, "{other:?}");
    }
}

#[tokio::test]
async fn the_limit_of_the_day_holds_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--backlog 300 --recipients-per-day 200";
    let run = simulate(folder.path(), words).await;
    run.ends_with(0).says("1 d 0 h").says("day 1");
}

#[tokio::test]
async fn what_cannot_be_played_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        "--backlog 1000001",
        "--bulk 101",
        "--recipients 0",
        "--recipients 5..1",
        "--per-minute 0",
        "--recipients-per-day 0",
        "--window monthly",
        "--spread 5",
        "--pods 0x1",
        "--concurrent 0",
        "--send-time 3s..1s",
        "--urgent-every 0s",
        "--urgent-every 2s",
        "--urgent-every 1m --recipients-per-day 1000",
        "--called-off-after soon",
        "--seed x",
    ] {
        let run = simulate(folder.path(), words).await;
        run.ends_with(2);
        assert!(run.stdout.is_empty(), "{run:?}");
    }
}

#[tokio::test]
async fn a_drawing_that_cannot_be_written_is_told_after_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulate(folder.path(), "--backlog 10 --plot missing/campaign.svg").await;
    run.ends_with(1)
        .says("mails sent")
        .says("missing/campaign.svg: cannot draw the report");
}

#[tokio::test]
async fn the_help_has_two_examples() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulate(folder.path(), "--help").await;
    run.ends_with(0);
    assert_eq!(run.stdout.matches("\n  mailrl simulate --").count(), 2, "{run:?}");
}
