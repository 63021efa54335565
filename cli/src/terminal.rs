//! Where lines go: results on stdout, all else on stderr, and neither through a progress bar.

use std::io::{self, IsTerminal, Write};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::words::printable;

const BAR: &str = "{spinner} {bar:20} {wide_msg}";

/// Standard output and error of the process, and the bars that are drawn there.
#[derive(Clone, Default)]
pub struct Terminal {
    bars: MultiProgress,
}

impl Terminal {
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a line of the result; fails if nobody reads it any more.
    pub fn out(&self, line: &str) -> io::Result<()> {
        let line = printable(line);
        self.bars.suspend(|| {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{line}")?;
            stdout.flush()
        })
    }

    /// Writes a line on stderr. There is nobody to tell if it fails.
    pub fn err(&self, line: &str) {
        let line = printable(line);
        let _ = self.bars.suspend(|| writeln!(io::stderr().lock(), "{line}"));
    }

    /// A bar for a wait of so many milliseconds, if there is somebody to see it.
    pub fn bar(&self, length_ms: u64) -> Option<ProgressBar> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let bar = self.bars.add(ProgressBar::new(length_ms));
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style);
        }
        Some(bar)
    }
}

/// Writes on stderr, around the bars.
impl Write for &Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bars
            .suspend(|| io::stderr().lock().write_all(bytes))
            .map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_can_be_drawn() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
