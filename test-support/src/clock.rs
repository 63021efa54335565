//! A server's clock that a test moves: a day passes in no time, and no test sits at a minute's edge.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// 15 June 2027, 12:00:00 UTC, in ms since 1970: at the beginning of a minute, far from midnight.
pub const NOON_MS: u64 = 1_813_060_800_000;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clock_shim.c");
const OFFSET_AT: u64 = 0;
const STILL_AT: u64 = 8;

/// The clock of one server.
#[derive(Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl Clock {
    /// Makes the library to preload, and the file that says what time it is.
    pub fn make(directory: &Path) -> Self {
        let library = directory.join("clock_shim.so");
        let built = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(SOURCE)
            .status()
            .expect("a C compiler named cc");
        assert!(built.success(), "{SOURCE} does not compile");
        let path = directory.join("clock");
        let file = File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)
            .expect("a new file in the test's own directory");
        let clock = Self { library, path, file };
        clock.write(OFFSET_AT, 0);
        clock.write(STILL_AT, 0);
        clock
    }

    /// Has a process that is about to start see this clock.
    pub fn show_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("CLOCK_SHIM_FILE", &self.path);
    }

    pub fn advance_ms(&self, delta: i64) {
        let still = self.read(STILL_AT);
        let (place, from) = match still {
            0 => (OFFSET_AT, self.read(OFFSET_AT)),
            still => (STILL_AT, still),
        };
        self.write(place, from + delta * 1_000);
    }

    pub fn stop_at_ms(&self, at: u64) {
        let at = i64::try_from(at).expect("a time of this era");
        self.write(STILL_AT, at * 1_000);
    }

    fn read(&self, place: u64) -> i64 {
        let mut bytes = [0; 8];
        self.file
            .read_exact_at(&mut bytes, place)
            .expect("the clock's own file");
        i64::from_ne_bytes(bytes)
    }

    /// Eight aligned bytes in one call: no reader sees half of them.
    fn write(&self, place: u64, value: i64) {
        self.file
            .write_all_at(&value.to_ne_bytes(), place)
            .expect("the clock's own file");
    }
}
