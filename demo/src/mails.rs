//! The mails: the samples over and over, each made distinct by its Message-ID.

use std::path::{Path, PathBuf};

use lettre::Address;
use lettre::address::Envelope;
use mailrl_mailer::envelope_of;

use crate::Failure;

/// One mail of the demo.
pub struct Mail {
    /// The `Message-ID` without its angle brackets.
    pub message_id: String,
    pub content: Vec<u8>,
    pub path: PathBuf,
}

impl Mail {
    /// Its envelope, if this mailbox sends it.
    pub fn envelope(&self, from: &Address) -> Result<Envelope, Failure> {
        Ok(envelope_of(&self.content, Some(from))?)
    }
}

/// All mails of the demo.
pub struct Campaign {
    /// Those that one mailbox sends.
    pub mails: Vec<Mail>,
    /// Those that others send meanwhile, one each.
    pub singles: Vec<(String, Mail)>,
}

impl Campaign {
    /// Writes so many mails into the folder.
    pub fn prepare(samples: &Path, folder: &Path, mails: usize, singles: usize) -> Result<Self, Failure> {
        let samples = sendable(samples)?;
        let mut samples = samples.iter().cycle();
        let mut write = |name: String| -> Result<Mail, Failure> {
            let message_id = format!("{name}@example.com");
            let sample = samples.next().ok_or("there is no sample")?;
            let content = with_message_id(sample, &message_id);
            let path = folder.join(format!("{name}.eml"));
            std::fs::write(&path, &content)?;
            Ok(Mail {
                message_id,
                content,
                path,
            })
        };
        let mut campaign = Self {
            mails: Vec::new(),
            singles: Vec::new(),
        };
        for number in 1..=mails {
            campaign.mails.push(write(format!("demo-{number:02}"))?);
        }
        for number in 1..=singles {
            let mailbox = format!("clerk-{number}@example.com");
            campaign
                .singles
                .push((mailbox, write(format!("single-{number}"))?));
        }
        Ok(campaign)
    }

    /// How many there are in all.
    pub fn len(&self) -> usize {
        self.mails.len() + self.singles.len()
    }

    /// Every mail.
    pub fn all(&self) -> impl Iterator<Item = &Mail> {
        self.mails.iter().chain(self.singles.iter().map(|(_, mail)| mail))
    }
}

/// The samples that name a sender and a recipient, in the order of their names.
fn sendable(folder: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let mut paths = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "eml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut mails = Vec::new();
    for path in paths {
        let content = std::fs::read(path)?;
        if envelope_of(&content, None).is_ok() {
            mails.push(content);
        }
    }
    if mails.is_empty() {
        return Err(format!("no mail in {} can be sent", folder.display()).into());
    }
    Ok(mails)
}

/// The mail with this `Message-ID` in place of its own.
fn with_message_id(mail: &[u8], message_id: &str) -> Vec<u8> {
    let mut changed = format!("Message-ID: <{message_id}>\r\n").into_bytes();
    let mut in_headers = true;
    let mut in_old_id = false;
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            in_headers = false;
        }
        let is_continued = matches!(line.first(), Some(b' ' | b'\t'));
        in_old_id = in_headers && (is_message_id(line) || in_old_id && is_continued);
        if !in_old_id {
            changed.extend_from_slice(line);
        }
    }
    changed
}

fn is_message_id(line: &[u8]) -> bool {
    const NAME: &[u8] = b"message-id:";
    line.get(..NAME.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_id_is_replaced_and_nothing_else() {
        let mail = b"From: a@b.c\nMessage-id:\n <old@b.c>\nTo: x@y.z\n\nMessage-ID: in the text\n";
        assert_eq!(
            String::from_utf8(with_message_id(mail, "new")).unwrap(),
            "Message-ID: <new>\r\nFrom: a@b.c\nTo: x@y.z\n\nMessage-ID: in the text\n"
        );
    }
}
