//! A mail out of a file.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lettre::Address;
use lettre::address::Envelope;
use mailrl_mailer::graph::LARGEST_MAIL;
use mailrl_mailer::{EnvelopeError, envelope_of};

/// Where a mail comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `-`
    StandardInput,
    /// A file of this name.
    File(PathBuf),
}

/// A mail and its envelope.
pub struct Mail {
    pub content: Vec<u8>,
    pub envelope: Envelope,
}

/// Why there is no mail to send.
#[derive(Debug, thiserror::Error)]
pub enum MailFileError {
    #[error("it is a directory, not a mail: name the files in it")]
    Directory,
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("it is empty")]
    Empty,
    #[error(
        "it is too big{}: Microsoft Graph takes 4 MB in base64 at most, which are {LARGEST_MAIL} bytes of mail with its \
         attachments", size.map(|size| format!(" ({size} bytes)")).unwrap_or_default()
    )]
    TooBig {
        /// Its size, if that can be told without reading it.
        size: Option<u64>,
    },
    #[error("{0}{hint}", hint = hint(.0))]
    Envelope(#[from] EnvelopeError),
}

fn hint(error: &EnvelopeError) -> &'static str {
    match error {
        EnvelopeError::NoSender => ". Please give it a From, or name a mailbox with --from",
        EnvelopeError::NoRecipient => ". Please give it one",
        EnvelopeError::NotAnAddress(_) => ". Please mend it in the mail's headers",
        _ => "",
    }
}

impl MailFileError {
    /// The error as it stands in JSON.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Directory | Self::Unreadable(_) => "unreadable",
            Self::Empty => "empty",
            Self::TooBig { .. } => "too_big",
            Self::Envelope(EnvelopeError::NoSender) => "no_sender",
            Self::Envelope(EnvelopeError::NoRecipient) => "no_recipient",
            Self::Envelope(EnvelopeError::NotAnAddress(_)) => "bad_address",
            Self::Envelope(_) => "not_a_mail",
        }
    }
}

impl Source {
    /// The sources of these names, each once, and the names of those that repeat another.
    pub fn list(names: Vec<PathBuf>) -> (Vec<Self>, Vec<Self>) {
        let mut seen = Vec::new();
        let (mut once, mut again) = (Vec::new(), Vec::new());
        for name in names {
            let source = if name == Path::new("-") {
                Self::StandardInput
            } else {
                Self::File(name)
            };
            let identity = source.identity();
            if seen.contains(&identity) {
                again.push(source);
            } else {
                seen.push(identity);
                once.push(source);
            }
        }
        (once, again)
    }

    /// The same for two names of the same file.
    fn identity(&self) -> Option<PathBuf> {
        match self {
            Self::StandardInput => None,
            Self::File(path) => Some(path.canonicalize().unwrap_or_else(|_| path.clone())),
        }
    }

    /// Reads the mail; it blocks for as long as a pipe has nothing to say.
    pub fn read(&self, from: Option<&Address>) -> Result<Mail, MailFileError> {
        let content = match self {
            Self::StandardInput => read_to_limit(io::stdin().lock(), None)?,
            Self::File(path) => read_file(path)?,
        };
        if content.is_empty() {
            return Err(MailFileError::Empty);
        }
        let envelope = envelope_of(&content, from)?;
        Ok(Mail { content, envelope })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => formatter.write_str("-"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, MailFileError> {
    let metadata = path.metadata().map_err(MailFileError::Unreadable)?;
    if metadata.is_dir() {
        return Err(MailFileError::Directory);
    }
    let size = metadata.is_file().then_some(metadata.len());
    let file = std::fs::File::open(path).map_err(MailFileError::Unreadable)?;
    read_to_limit(file, size)
}

/// Never more than Graph takes: a file can be of any size, and a device has no end.
fn read_to_limit(reader: impl Read, size: Option<u64>) -> Result<Vec<u8>, MailFileError> {
    let limit = u64::try_from(LARGEST_MAIL).unwrap_or(u64::MAX);
    if size.is_some_and(|size| size > limit) {
        return Err(MailFileError::TooBig { size });
    }
    let mut content = Vec::new();
    reader
        .take(limit + 1)
        .read_to_end(&mut content)
        .map_err(MailFileError::Unreadable)?;
    if content.len() > LARGEST_MAIL {
        return Err(MailFileError::TooBig { size: None });
    }
    Ok(content)
}
