//! The mail that a job stands for, from the job itself or from the store.

use std::time::Duration;

use bytes::Bytes;

use super::job::MailJob;
use super::store::{MailStore, StoreError};

/// How long the store may take to answer, its own retries included.
const PATIENCE: Duration = Duration::from_secs(20);

/// No mail to send.
#[derive(Debug)]
pub(super) enum ContentsError {
    /// Nor will there be another time.
    Unusable(String),
    /// The store does not answer.
    Unavailable(String),
}

/// The mail of a job: the one in it, else the one in the store, at `kept` if it was kept there since.
pub(super) async fn mail_of(
    job: &MailJob,
    kept: Option<&str>,
    mails: &MailStore,
) -> Result<Bytes, ContentsError> {
    let inline = job
        .inline_mime()
        .map_err(|error| ContentsError::Unusable(error.to_string()))?;
    match (inline, kept.or(job.mime_path.as_deref())) {
        (Some(mime), _) => Ok(mime),
        (None, Some(path)) => fetch(path, mails).await,
        (None, None) => Err(ContentsError::Unusable("the job holds no mail".to_owned())),
    }
}

async fn fetch(path: &str, mails: &MailStore) -> Result<Bytes, ContentsError> {
    match tokio::time::timeout(PATIENCE, mails.get(path)).await {
        Ok(Ok(mime)) => Ok(mime),
        Ok(Err(error @ (StoreError::Missing(_) | StoreError::Path(_)))) => {
            Err(ContentsError::Unusable(error.to_string()))
        }
        Ok(Err(error)) => Err(ContentsError::Unavailable(error.to_string())),
        Err(_) => Err(ContentsError::Unavailable(format!(
            "the store of mails did not answer within {PATIENCE:?}"
        ))),
    }
}
