//! Reads the file, and says what is wrong with it without showing what stands in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mailrl_client::Mailbox;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::provider::Check;
use super::{MailConfig, MailboxConfig};

/// A configuration file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("the configuration file {} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// Something in it is wrong.
    #[error("{}, line {line}: {error}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line of the wrong key or value, or of the section that it is in; the first is 1.
        line: usize,
        /// What is wrong, without any value.
        error: String,
    },
}

impl MailConfig {
    /// Reads the file. Paths in it are meant from its own folder on.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|error| FileError::Unreadable {
            path: path.to_owned(),
            error: error.to_string(),
        })?;
        let mut config: Self = toml::from_str(&text).map_err(|error| FileError::Wrong {
            path: path.to_owned(),
            line: line(&text, error.span().map_or(0, |span| span.start)),
            error: explain(error.message()),
        })?;
        if let Some(directory) = path.parent() {
            config.graph.resolve_paths(directory);
            config.sendgrid.resolve_paths(directory);
            let tenants = config.tenant.values_mut();
            tenants.for_each(|tenant| tenant.resolve_paths(directory));
        }
        Ok(config)
    }
}

/// Reads a section whose keys must fit each other.
pub(super) fn checked<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Check,
{
    let section = T::deserialize(deserializer)?;
    section.check().map_err(D::Error::custom)?;
    Ok(section)
}

/// Reads the sections of mailboxes, whose names may be written in several ways.
pub(super) fn by_mailbox<'de, D>(deserializer: D) -> Result<BTreeMap<Mailbox, MailboxConfig>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    struct Checked(#[serde(deserialize_with = "checked")] MailboxConfig);

    let mut mailboxes = BTreeMap::new();
    for (name, Checked(config)) in BTreeMap::<String, Checked>::deserialize(deserializer)? {
        if mailboxes.insert(Mailbox::new(&name), config).is_some() {
            return Err(D::Error::custom(format!(
                "[mailbox.{name:?}] names the same mailbox as another section"
            )));
        }
    }
    Ok(mailboxes)
}

fn line(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// What is wrong, without the value: it may be an address with a password.
fn explain(message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
    let message = match (message.find("string \""), message.rfind('"')) {
        (Some(from), Some(to)) if from + "string".len() < to => {
            format!("{}a string{}", &message[..from], &message[to + 1..])
        }
        _ => message,
    };
    message.replace("unknown field", "unknown key")
}
