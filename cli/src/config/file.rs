//! The configuration file.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What the file can hold; `mailrl.example.toml` explains each key.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub redis: Redis,
    pub graph: Graph,
    pub limits: Limits,
    pub mailbox: BTreeMap<String, MailboxLimits>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Redis {
    pub url: Option<String>,
    pub deadline_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "they are the names of the keys")]
pub struct Graph {
    pub tenant: Option<String>,
    pub client_id: Option<String>,
    pub client_secret_file: Option<PathBuf>,
    pub login_url: Option<String>,
    pub graph_url: Option<String>,
    pub timeout_s: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub rate_limit_per_minute: Option<NonZeroU32>,
    pub rate_limit_recipients_per_day: Option<NonZeroU32>,
    pub concurrent: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailboxLimits {
    pub rate_limit_per_minute: Option<NonZeroU32>,
    pub rate_limit_recipients_per_day: Option<NonZeroU32>,
}

impl std::fmt::Debug for Redis {
    /// Leaves the address out, since it may hold a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Redis")
            .field("deadline_ms", &self.deadline_ms)
            .finish_non_exhaustive()
    }
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the configuration file {} cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{}, line {line}: {error}", path.display())]
    Wrong {
        path: PathBuf,
        line: usize,
        error: String,
    },
}

impl File {
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|error| FileError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        let mut file: Self = toml::from_str(&text).map_err(|error| FileError::Wrong {
            path: path.to_owned(),
            line: line(&text, error.span().map_or(0, |span| span.start)),
            error: explain(error.message()),
        })?;
        // A path is meant from where the file is, not from where the command runs.
        if let (Some(secret), Some(directory)) = (&mut file.graph.client_secret_file, path.parent()) {
            *secret = directory.join(&*secret);
        }
        Ok(file)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../mailrl.example.toml");

    fn read(text: &str) -> Result<File, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mailrl.toml");
        std::fs::write(&path, text).unwrap();
        File::read(&path).map_err(|error| error.to_string().replace(directory.path().to_str().unwrap(), ""))
    }

    #[test]
    fn the_example_parses_and_shows_every_key() {
        let file: File = toml::from_str(EXAMPLE).unwrap();
        // Each pattern names all fields: a new one has to come into the example to compile here.
        let File {
            redis,
            graph,
            limits,
            mailbox,
        } = file;
        let Redis { url, deadline_ms } = redis;
        assert!(url.is_some() && deadline_ms.is_some());
        let Graph {
            tenant,
            client_id,
            client_secret_file,
            login_url,
            graph_url,
            timeout_s,
        } = graph;
        assert!(tenant.is_some() && client_id.is_some() && client_secret_file.is_some());
        assert!(login_url.is_some() && graph_url.is_some() && timeout_s.is_some());
        let Limits {
            rate_limit_per_minute,
            rate_limit_recipients_per_day,
            concurrent,
        } = limits;
        assert!(
            rate_limit_per_minute.is_some()
                && rate_limit_recipients_per_day.is_some()
                && concurrent.is_some()
        );
        let MailboxLimits {
            rate_limit_per_minute,
            rate_limit_recipients_per_day,
        } = mailbox.values().next().unwrap();
        assert!(rate_limit_per_minute.is_some() && rate_limit_recipients_per_day.is_some());
    }

    #[test]
    fn a_wrong_key_is_told_with_file_line_and_the_keys_that_there_are() {
        let error = read("[redis]\nurl = 'redis://h'\n\n[limits]\nrate_limit = 3\n").unwrap_err();
        assert!(
            error.starts_with("/mailrl.toml, line 5: unknown key `rate_limit`"),
            "{error}"
        );
        for key in [
            "rate_limit_per_minute",
            "rate_limit_recipients_per_day",
            "concurrent",
        ] {
            assert!(error.contains(key), "{error}");
        }
        let error = read("[mailbox.\"a@b\"]\nconcurrent = 3\n").unwrap_err();
        assert!(error.contains("line 2: unknown key `concurrent`"), "{error}");
        assert!(read("[redi]\n").unwrap_err().contains("`redis`"));
    }

    #[test]
    fn a_wrong_value_is_told_without_it() {
        for text in [
            "redis = 'redis://u:hunter2@h'\n",
            "[redis]\ndeadline_ms = \"redis://u:hunter2@h\\\"\"\n",
            "[redis]\nurl = 'redis://u:hunter2@h\n",
            "[redis]\nurl = redis://u:hunter2@h\n",
            "[redis]\nurl = 'redis://u:hunter2@h' x\n",
            "[limits]\nrate_limit_per_minute = 'hunter2'\n",
        ] {
            let error = read(text).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
            assert!(error.starts_with("/mailrl.toml, line "), "{error}");
        }
        let error = read("[limits]\nrate_limit_per_minute = 0\n").unwrap_err();
        assert!(error.contains("nonzero"), "{error}");
    }

    #[test]
    fn the_path_of_the_secret_counts_from_the_file() {
        let file = read("[graph]\nclient_secret_file = 'secret'\n").unwrap();
        let path = file.graph.client_secret_file.unwrap();
        assert!(path.is_absolute() && path.ends_with("secret"), "{path:?}");
        let file = read("[graph]\nclient_secret_file = '/run/secret'\n").unwrap();
        assert_eq!(
            file.graph.client_secret_file.unwrap(),
            PathBuf::from("/run/secret")
        );
    }

    #[test]
    fn debug_shows_no_address() {
        let file = read("[redis]\nurl = 'redis://u:hunter2@h'\n").unwrap();
        assert!(!format!("{file:?}").contains("hunter2"));
    }
}
