//! Replies, as they come over the wire.

use std::io::{self, BufRead};

/// What the server says to a call. Error texts may hold any byte, which clients do not expect.
#[derive(Debug)]
pub enum Reply {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Reply>),
}

impl Reply {
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let [kind, text @ .., b'\r', b'\n'] = line.as_slice() else {
            return Err(io::Error::other(format!("cut off: {}", line.escape_ascii())));
        };
        let number = || {
            let text = std::str::from_utf8(text).map_err(io::Error::other)?;
            text.parse::<i64>().map_err(io::Error::other)
        };
        match kind {
            b'+' => Ok(Self::Status(text.to_vec())),
            b'-' => Ok(Self::Error(text.to_vec())),
            b':' => number().map(Self::Integer),
            b'*' => (0..number()?)
                .map(|_| Self::read(from))
                .collect::<io::Result<_>>()
                .map(Self::Array),
            b'$' => {
                let Ok(len) = usize::try_from(number()?) else {
                    return Ok(Self::Bulk(None));
                };
                let mut bytes = vec![0; len + 2];
                from.read_exact(&mut bytes)?;
                bytes.truncate(len);
                Ok(Self::Bulk(Some(bytes)))
            }
            _ => Err(io::Error::other(format!("no reply: {}", line.escape_ascii()))),
        }
    }
}
