//! Where a secret comes from.

use std::path::PathBuf;

use super::account::AccountError;
use crate::graph::Secret;

/// Where one kind of secret comes from. No value of a variable's name is ever shown: it could be a
/// secret that somebody put in the wrong place.
pub(super) struct SecretKeys<'a> {
    /// What it is, in words.
    pub(super) what: &'static str,
    /// What its keys begin with.
    pub(super) key: &'static str,
    pub(super) variable: Option<&'a str>,
    pub(super) file: Option<&'a PathBuf>,
}

impl SecretKeys<'_> {
    /// The secret as it stands there now, without the white space around it.
    pub(super) fn read(&self) -> Result<Secret, AccountError> {
        let (what, key) = (self.what, self.key);
        if let Some(secret) = self.variable.and_then(|name| std::env::var(name).ok())
            && !secret.trim().is_empty()
        {
            return Ok(Secret::new(secret.trim()));
        }
        let Some(path) = self.file else {
            return Err(match self.variable {
                Some(_) => AccountError::VariableNotSet { what, key },
                None => AccountError::NoSecret { what, key },
            });
        };
        let text = std::fs::read_to_string(path).map_err(|error| AccountError::SecretUnreadable {
            what,
            path: path.clone(),
            error: error.to_string(),
        })?;
        match text.trim() {
            "" => Err(AccountError::SecretEmpty {
                what,
                path: path.clone(),
            }),
            secret => Ok(Secret::new(secret)),
        }
    }
}
