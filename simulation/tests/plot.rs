//! A report becomes a table and a drawing.

use mailrl_core::{Config, WindowKind};
use mailrl_simulation::{Scenario, plot, run};

#[test]
fn the_drawing_shows_what_went_out_what_was_asked_and_what_graph_saw() {
    let scenario = Scenario {
        backlog: 2_000,
        config: Config {
            kind: WindowKind::Rolling,
            per_day: 1_000,
            ..Config::default()
        },
        ..Scenario::default()
    };
    let report = run(&scenario, |_| {}).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.svg");
    plot(&report, &file).unwrap();
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    for text in [
        "Mails that Graph has",
        "RESERVE calls a minute",
        "in 60 s",
        "in 24 h",
        "hours",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let scenario = Scenario {
        backlog: 1,
        ..Scenario::default()
    };
    let report = run(&scenario, |_| {}).unwrap();
    assert!(plot(&report, std::path::Path::new("/nowhere/run.svg")).is_err());
}

#[test]
fn the_table_names_every_figure() {
    let scenario = Scenario {
        backlog: 100,
        backlog_bulk_percent: 50,
        ..Scenario::default()
    };
    let table = run(&scenario, |_| {}).unwrap().to_string();
    for text in [
        "100 of 100",
        "a mail",
        "of the ideal",
        "any 60 s",
        "any 24 h",
        "normal",
        "bulk",
    ] {
        assert!(table.contains(text), "{text} is missing:\n{table}");
    }
}
