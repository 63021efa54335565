//! What was counted, held against what was accepted before.

use std::fmt;
use std::str::FromStr;

/// A change of more hundredths than this, in either direction, is one to be looked at: fewer
/// instructions that nobody expected are as much of a surprise as more.
const TOLERATED_PERCENT: u64 = 5;
const COMPILER: &str = "# compiler: ";

/// The instructions of each case, as they stand in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// What they hold for.
    pub compiler: String,
    pub cases: Vec<(String, u64)>,
}

impl Counts {
    fn of(&self, name: &str) -> Option<u64> {
        self.cases.iter().find(|case| case.0 == name).map(|case| case.1)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "# Instructions of one call. `make counts ACCEPT=1` writes this file."
        )?;
        writeln!(out, "{COMPILER}{}", self.compiler)?;
        for (name, count) in &self.cases {
            writeln!(out, "{count:>8}  {name}")?;
        }
        Ok(())
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut counts = Self {
            compiler: "unknown".into(),
            cases: Vec::new(),
        };
        for line in text.lines().map(str::trim) {
            if let Some(compiler) = line.strip_prefix(COMPILER) {
                counts.compiler = compiler.into();
            } else if !line.is_empty() && !line.starts_with('#') {
                let case = line.split_once(' ').and_then(|(count, name)| {
                    let count = count.parse().ok().filter(|count| *count > 0)?;
                    Some((name.trim().to_owned(), count))
                });
                counts
                    .cases
                    .push(case.ok_or_else(|| format!("'{line}' is no count and name"))?);
            }
        }
        Ok(counts)
    }
}

/// One case, before and now; it may be new or gone.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    before: Option<u64>,
    now: Option<u64>,
}

impl Row {
    fn holds(&self) -> bool {
        match (self.before, self.now) {
            (Some(before), Some(now)) => before.abs_diff(now) * 100 <= before * TOLERATED_PERCENT,
            _ => false,
        }
    }

    fn change(&self) -> String {
        match (self.before, self.now) {
            (Some(before), Some(now)) => {
                let sign = if now < before { '-' } else { '+' };
                let tenths = before.abs_diff(now) * 1_000 / before;
                format!("{sign}{}.{} %", tenths / 10, tenths % 10)
            }
            (None, _) => "new".into(),
            (_, None) => "gone".into(),
        }
    }
}

/// All cases, and what to do about them.
#[derive(Debug)]
pub struct Comparison {
    rows: Vec<Row>,
    /// The compiler before and now, if it is another.
    compilers: Option<(String, String)>,
}

impl Comparison {
    /// Whether no case has changed by more than is tolerated.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }
}

pub fn compare(before: &Counts, now: &Counts) -> Comparison {
    let mut rows: Vec<Row> = now
        .cases
        .iter()
        .map(|(name, count)| Row {
            name: name.clone(),
            before: before.of(name),
            now: Some(*count),
        })
        .collect();
    rows.extend(
        before
            .cases
            .iter()
            .filter(|case| now.of(&case.0).is_none())
            .map(|(name, count)| Row {
                name: name.clone(),
                before: Some(*count),
                now: None,
            }),
    );
    Comparison {
        rows,
        compilers: (before.compiler != now.compiler).then(|| (before.compiler.clone(), now.compiler.clone())),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |count: Option<u64>| count.map_or_else(|| "-".into(), |count| count.to_string());
        writeln!(
            out,
            "{:<34}{:>8}{:>8}{:>10}",
            "instructions", "before", "now", "change"
        )?;
        for row in &self.rows {
            let mark = if row.holds() { "" } else { "  <--" };
            let (before, now) = (shown(row.before), shown(row.now));
            writeln!(
                out,
                "{:<34}{before:>8}{now:>8}{:>10}{mark}",
                row.name,
                row.change()
            )?;
        }
        if self.holds() {
            return write!(out, "No case changed by more than {TOLERATED_PERCENT} %.");
        }
        if let Some((before, now)) = &self.compilers {
            writeln!(
                out,
                "The counts before are of another compiler: {before}; this is {now}."
            )?;
        }
        write!(
            out,
            "Cases changed by more than {TOLERATED_PERCENT} %. If that is meant: make counts ACCEPT=1"
        )
    }
}
