//! The mail that a job stands for, and from whom to whom it goes.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lettre::address::Envelope;

use super::job::MailJob;
use super::store::{MailStore, StoreError};
use crate::envelope::{EnvelopeError, address, envelope_of, sender_of};

/// How long the store may take to answer, its own retries included.
const PATIENCE: Duration = Duration::from_secs(20);

/// A mail, and from whom to whom it goes.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) mime: Bytes,
    pub(super) envelope: Envelope,
}

/// No mail to send.
#[derive(Debug)]
pub(super) enum ContentsError {
    /// Nor will there be another time.
    Unusable(String),
    /// The store does not answer.
    Unavailable(String),
}

/// The mail of a job: the one in it, else the one in the store, at `kept` if it was kept there since.
pub(super) async fn contents_of(
    job: &MailJob,
    kept: Option<&str>,
    mails: &MailStore,
) -> Result<Contents, ContentsError> {
    let mime = match (&job.mime, kept.or(job.mime_path.as_deref())) {
        (Some(mime), _) => STANDARD
            .decode(mime)
            .map(Bytes::from)
            .map_err(|error| ContentsError::Unusable(format!("the job's mail is not base64: {error}")))?,
        (None, Some(path)) => fetch(path, mails).await?,
        (None, None) => {
            let error = "the job holds no mail: set mime or mime_path";
            return Err(ContentsError::Unusable(error.to_owned()));
        }
    };
    let envelope = envelope(job, &mime).map_err(|error| ContentsError::Unusable(error.to_string()))?;
    Ok(Contents { mime, envelope })
}

async fn fetch(path: &str, mails: &MailStore) -> Result<Bytes, ContentsError> {
    match tokio::time::timeout(PATIENCE, mails.get(path)).await {
        Ok(Ok(mime)) => Ok(mime),
        Ok(Err(error @ StoreError::Missing(_))) => Err(ContentsError::Unusable(error.to_string())),
        Ok(Err(error)) => Err(ContentsError::Unavailable(error.to_string())),
        Err(_) => Err(ContentsError::Unavailable(format!(
            "the store of mails did not answer within {PATIENCE:?}"
        ))),
    }
}

fn envelope(job: &MailJob, mime: &[u8]) -> Result<Envelope, EnvelopeError> {
    let from = match &job.from {
        Some(from) => address(from.clone())?,
        None => sender_of(mime)?,
    };
    let Some(to) = &job.to else {
        return envelope_of(mime, Some(&from));
    };
    let to = to.iter().cloned().map(address).collect::<Result<_, _>>()?;
    Envelope::new(Some(from), to).map_err(|_| EnvelopeError::NoRecipient)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &[u8] = b"From: a@example.com\nTo: b@example.net\nCc: c@example.net\n\nHello.\n";

    fn job(data: serde_json::Value) -> MailJob {
        let mut data = data;
        data["message_id"] = "m".into();
        serde_json::from_value(data).unwrap()
    }

    fn parties(data: serde_json::Value) -> Vec<String> {
        let envelope = envelope(&job(data), MAIL).unwrap();
        let from = envelope.from().map(ToString::to_string);
        from.into_iter()
            .chain(envelope.to().iter().map(ToString::to_string))
            .collect()
    }

    #[test]
    fn what_the_job_leaves_out_of_the_envelope_stands_in_the_mail() {
        let (mailed, own) = ("a@example.com", "x@example.com");
        let (to, cc, other) = ("b@example.net", "c@example.net", "y@example.net");
        assert_eq!(parties(serde_json::json!({})), [mailed, to, cc]);
        assert_eq!(parties(serde_json::json!({ "from": own })), [own, to, cc]);
        assert_eq!(parties(serde_json::json!({ "to": [other] })), [mailed, other]);
        assert_eq!(
            parties(serde_json::json!({ "from": own, "to": [other] })),
            [own, other]
        );
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        let error = envelope(&job(serde_json::json!({ "to": ["y"] })), MAIL).unwrap_err();
        assert_eq!(error.to_string(), "not a mail address: \"y\"");
    }
}
