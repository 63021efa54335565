//! What the factory logs, through `tracing`. The field `event` and the fields named here are stable.
//!
//! | event | level | fields | when |
//! | --- | --- | --- | --- |
//! | [`CHANGED`] | info | `tenants`, `mailboxes` | the configuration was read anew and holds from now on; the fields name who got another mailer, separated by commas |
//! | [`INVALID`] | error | `error` | the configuration cannot be used, and what held before goes on to hold; once for each fault, with file and line |
//! | [`UNUSABLE`] | error | `error` | the configuration holds, but some sender has no mailer by it, for a secret that is missing say: its mail is tried again later |
//! | [`RESTART_NEEDED`] | warn | `changed` | something changed that holds from the next start on only |

use std::collections::BTreeSet;

use tracing::{error, info, warn};

use super::plan::Difference;
use crate::config::FileError;

/// The configuration was read anew and holds from now on.
pub const CHANGED: &str = "mail.config.changed";
/// The configuration cannot be used, and what held before goes on to hold.
pub const INVALID: &str = "mail.config.invalid";
/// Some sender has no mailer by the configuration.
pub const UNUSABLE: &str = "mail.config.unusable";
/// Something changed that holds from the next start on only.
pub const RESTART_NEEDED: &str = "mail.config.restartNeeded";

pub(super) fn changed(difference: &Difference) {
    info!(
        event = CHANGED,
        tenants = joined(&difference.tenants),
        mailboxes = joined(&difference.mailboxes),
        "the configuration was read anew"
    );
}

pub(super) fn invalid(error: &FileError) {
    error!(
        event = INVALID,
        error = %error,
        "the configuration cannot be used, what held before goes on to hold"
    );
}

pub(super) fn unusable<'a>(faults: impl Iterator<Item = &'a String>) {
    for error in faults {
        error!(
            event = UNUSABLE,
            error, "there is no mailer by the configuration, mail is tried again later"
        );
    }
}

pub(super) fn restart_needed(changed: &[&str]) {
    warn!(
        event = RESTART_NEEDED,
        changed = changed.join(", "),
        "the configuration changed in what holds from the next start on only, please restart"
    );
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
