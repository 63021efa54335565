//! Errors as Microsoft words them: Graph's and Entra's JSON, with the headers that belong to it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::fault::{Answer, Target};
use crate::throttle::{Cause, Throttled};

/// Graph's error body: "Microsoft Graph error responses and resource types".
pub(crate) fn graph_error(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({ "error": { "code": code, "message": message, "innerError": {} } });
    (status, Json(body)).into_response()
}

/// Entra's error body: "OAuth 2.0 client credentials flow", error response.
pub(crate) fn entra_error(status: StatusCode, error: &str, description: &str) -> Response {
    let body = json!({ "error": error, "error_description": description });
    (status, Json(body)).into_response()
}

/// A 429 with the time to wait in whole seconds, rounded up.
pub(crate) fn throttled(throttled: Throttled) -> Response {
    let message = match throttled.cause {
        Cause::Messages => "Application is over its message rate limit for this mailbox.",
        Cause::Recipients => "Application is over its recipient rate limit for this mailbox.",
        Cause::Concurrent => "Application is over its MailboxConcurrency limit.",
    };
    let mut response = graph_error(StatusCode::TOO_MANY_REQUESTS, "ApplicationThrottled", message);
    let whole = throttled.retry_after.as_secs() + u64::from(throttled.retry_after.subsec_nanos() > 0);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from(whole.max(1)));
    response
}

/// An answer that a fault asks for.
pub(crate) fn injected(answer: &Answer, target: Target) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = answer
        .message
        .as_deref()
        .unwrap_or("The simulator was told to answer this.");
    let mut response = match (&answer.body, &answer.code, target) {
        (Some(body), _, _) => (status, body.clone()).into_response(),
        (None, None, _) => status.into_response(),
        (None, Some(code), Target::SendMail) => graph_error(status, code, message),
        (None, Some(code), Target::Token) => entra_error(status, code, message),
    };
    let values = answer
        .retry_after
        .iter()
        .filter_map(|value| HeaderValue::from_str(value).ok());
    for value in values {
        response.headers_mut().append(header::RETRY_AFTER, value);
    }
    response
}
