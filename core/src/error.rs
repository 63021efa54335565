//! A value that is not one of ours.

/// Why a string is not a mailbox's value. It is never overwritten or trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// It does not begin as our values do.
    #[error("the key holds a string that mailrl did not write; use another key, or delete this one")]
    Foreign,
    /// It was written by a version that this one does not know.
    #[error(
        "the key was written by layout version {0}, which this module does not know; load a newer module"
    )]
    Version(u8),
    /// It is too short, too long or cut off.
    #[error(
        "the key holds a string of a length that no mailrl value has; use another key, or delete this one"
    )]
    Length,
    /// Its parts contradict each other.
    #[error("the key holds a damaged mailrl value; delete it to start this mailbox anew")]
    Damaged,
}
