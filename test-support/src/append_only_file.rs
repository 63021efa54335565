//! What a server has written into its append-only file.

use std::path::PathBuf;

use crate::RedisServer;

/// A command in the file: its words.
pub type Words = Vec<Vec<u8>>;

impl RedisServer {
    /// The bytes that the server has appended since it started or last rewrote the file. It has to be
    /// started with `appendonly yes`, and with `appendfsync no` or `always` if they are to stand there
    /// by the time that a call is answered.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn appended(&self) -> Vec<u8> {
        std::fs::read(self.increment()).expect("the append-only file's increment")
    }

    /// How many bytes those are.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn appended_len(&self) -> u64 {
        let metadata = self.increment().metadata();
        metadata.expect("the append-only file's increment").len()
    }

    /// The commands that those bytes are.
    ///
    /// # Panics
    /// If they are not whole commands.
    #[must_use]
    pub fn appended_commands(&self) -> Vec<Words> {
        parse(&self.appended())
    }

    /// The newest file of the directory that the server appends to.
    fn increment(&self) -> PathBuf {
        let directory = self.directory().join("appendonlydir");
        let files = directory.read_dir().expect("a server with appendonly yes");
        let number = |path: &PathBuf| -> u64 {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = name
                .strip_suffix(".incr.aof")
                .and_then(|name| name.rsplit('.').next());
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        files
            .flatten()
            .map(|entry| entry.path())
            .max_by_key(number)
            .expect("an append-only file")
    }
}

fn parse(mut bytes: &[u8]) -> Vec<Words> {
    let mut commands = Vec::new();
    while !bytes.is_empty() {
        let count = length(&mut bytes, b'*');
        let words = (0..count).map(|_| {
            let len = length(&mut bytes, b'$');
            let word = bytes[..len].to_vec();
            bytes = &bytes[len + 2..];
            word
        });
        commands.push(words.collect());
    }
    commands
}

/// Reads a line that is a sign and a number.
fn length(bytes: &mut &[u8], sign: u8) -> usize {
    let end = bytes
        .iter()
        .position(|&byte| byte == b'\r')
        .expect("a whole line");
    let (line, rest) = bytes.split_at(end);
    assert_eq!(line[0], sign, "at {}", line.escape_ascii());
    *bytes = &rest[2..];
    std::str::from_utf8(&line[1..])
        .ok()
        .and_then(|number| number.parse().ok())
        .expect("a number")
}
