//! How `make counts` holds counts against those that were accepted.

#[path = "../benches/counts/compare.rs"]
mod compare;

use compare::{Counts, compare};

fn counts(cases: &[(&str, u64)]) -> Counts {
    Counts {
        compiler: "rustc 1".into(),
        cases: cases
            .iter()
            .map(|(name, count)| ((*name).into(), *count))
            .collect(),
    }
}

#[test]
fn five_per_cent_hold_and_one_instruction_more_does_not_in_either_direction() {
    let before = counts(&[("release", 1_000)]);
    for (now, holds) in [
        (1_000, true),
        (950, true),
        (1_050, true),
        (949, false),
        (1_051, false),
    ] {
        assert_eq!(
            compare(&before, &counts(&[("release", now)])).holds(),
            holds,
            "{now}"
        );
    }
}

#[test]
fn a_case_that_changed_is_told_with_by_how_much() {
    let before = counts(&[("reserve", 1_000), ("release", 400)]);
    let text = compare(&before, &counts(&[("reserve", 1_250), ("release", 399)])).to_string();
    let line = |name| text.lines().find(|line| line.starts_with(name)).expect("a line");
    assert!(line("reserve").ends_with("1000    1250   +25.0 %  <--"), "{text}");
    assert!(line("release").ends_with("400     399    -0.2 %"), "{text}");
    assert!(text.contains("ACCEPT=1"), "{text}");
}

#[test]
fn a_case_that_is_new_or_gone_does_not_hold() {
    let (one, two) = (
        counts(&[("reserve", 9)]),
        counts(&[("reserve", 9), ("commit", 7)]),
    );
    for (comparison, word) in [(compare(&one, &two), "new"), (compare(&two, &one), "gone")] {
        assert!(!comparison.holds());
        assert!(comparison.to_string().contains(word));
    }
}

#[test]
fn another_compiler_is_named_when_counts_changed() {
    let before = counts(&[("reserve", 100)]);
    let now = Counts {
        compiler: "rustc 2".into(),
        ..counts(&[("reserve", 200)])
    };
    let text = compare(&before, &now).to_string();
    assert!(
        text.contains("another compiler: rustc 1; this is rustc 2"),
        "{text}"
    );
}

#[test]
fn what_is_written_is_read_again_and_a_line_that_is_no_count_is_named() {
    let written = counts(&[("reserve allowed, calendar", 432), ("release", 7)]);
    assert_eq!(written.to_string().parse(), Ok(written));
    for text in ["many reserve", "0 reserve", "432"] {
        let error = text.parse::<Counts>().expect_err("it is no count");
        assert!(error.contains(text), "{error}");
    }
}
