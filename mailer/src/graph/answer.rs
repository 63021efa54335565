//! What Graph answered, if it was not the 202 that means success.

use std::time::{Duration, SystemTime};

use mailrl_client::MailOutcome;
use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::retry_after;

/// No error of Microsoft's comes near to this.
const LONGEST_BODY: usize = 64 * 1024;
const LONGEST_MESSAGE: usize = 300;

/// An answer that is not a success.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) retry_after: Option<Duration>,
}

/// "Microsoft Graph error responses and resource types".
#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Deserialize)]
struct ErrorDetail {
    code: Option<String>,
    message: Option<String>,
}

impl Answer {
    /// Reads the answer to its end.
    ///
    /// # Errors
    /// If the connection breaks or the time runs out: then its code is unknown.
    pub(super) async fn read(response: Response) -> Result<Self, reqwest::Error> {
        let status = response.status();
        let request_id = request_id(&response);
        let throttles = status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::SERVICE_UNAVAILABLE && retry_after::is_given(response.headers());
        let retry_after = throttles.then(|| retry_after::retry_after(response.headers(), SystemTime::now()));
        let body = read_body(response).await?;
        let error = serde_json::from_slice::<ErrorBody>(&body)
            .ok()
            .map(|body| body.error);
        let (code, message) = error.map_or((None, None), |error| (error.code, error.message));
        Ok(Self {
            status,
            code: code.map(|code| printable(&code)),
            message: message.map(|message| printable(&message)),
            request_id,
            retry_after,
        })
    }

    /// By status and code, never by message: Microsoft changes messages without notice.
    pub(super) fn outcome(&self) -> MailOutcome {
        if self.code.as_deref().is_some_and(may_have_delivered) {
            return MailOutcome::Unknown;
        }
        if let Some(retry_after) = self.retry_after {
            return MailOutcome::Throttled { retry_after };
        }
        match self.status.as_u16() {
            400..=499 | 500 | 503 => MailOutcome::NotSent,
            _ => MailOutcome::Unknown,
        }
    }
}

/// Codes after which the mail has been seen to arrive all the same.
fn may_have_delivered(code: &str) -> bool {
    ["UnknownError", "CommandConcurrencyLimitReached"]
        .iter()
        .any(|known| code.eq_ignore_ascii_case(known))
}

/// Graph's name for the request, by which Microsoft's support finds it.
pub(super) fn request_id(response: &Response) -> Option<String> {
    let id = response.headers().get("request-id")?.to_str().ok()?;
    Some(printable(id))
}

/// The body, or as much of it as any error takes.
pub(super) async fn read_body(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < LONGEST_BODY
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// One line of at most 300 characters, whatever somebody sent.
pub(super) fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).take(LONGEST_MESSAGE).collect()
}
