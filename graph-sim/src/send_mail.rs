//! `POST /v1.0/users/{mailbox}/sendMail`, as Microsoft's page "user: sendMail" has it for MIME.

use std::future::pending;

use axum::body::Body;
use axum::extract::{Extension, Path, State as From};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::time::sleep;

use crate::connection::Connection;
use crate::fault::{Moment, Strike, Target, Then};
use crate::graph_error::{graph_error, injected, throttled};
use crate::mail::{Mail, Rubbish};
use crate::state::{State, normalised};

pub(crate) async fn send_mail(
    From(state): From<State>,
    Path(mailbox): Path<String>,
    Extension(connection): Extension<Connection>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let mailbox = normalised(&mailbox);
    let _place = match state.enter(&mailbox) {
        Ok(place) => place,
        Err(refusal) => {
            drain(body).await;
            return throttled(refusal);
        }
    };
    let strike = |at| state.strike(at, Target::SendMail, &mailbox);
    if let Some(response) = suffer(strike(Moment::Head), Target::SendMail, &connection).await {
        return response;
    }
    let body = read(body, state.settings.limits.request_bytes).await;
    if let Some(response) = suffer(strike(Moment::Body), Target::SendMail, &connection).await {
        return response;
    }
    let mail = match check(&state, &headers, body) {
        Ok(mail) => mail,
        Err(response) => {
            state.rejected(&mailbox);
            return response;
        }
    };
    let (before, after) = state.latency();
    sleep(before).await;
    if let Err(refusal) = state.accept(&mailbox, mail) {
        return throttled(refusal);
    }
    if let Some(response) = suffer(strike(Moment::Accepted), Target::SendMail, &connection).await {
        return response;
    }
    sleep(after).await;
    StatusCode::ACCEPTED.into_response()
}

/// Lets a fault have its way with a request; nothing if the request goes on.
pub(crate) async fn suffer(
    strike: Option<Strike>,
    target: Target,
    connection: &Connection,
) -> Option<Response> {
    let strike = strike?;
    sleep(strike.delay).await;
    match strike.then {
        Then::Answer(answer) => Some(injected(&answer, target)),
        Then::Reset => {
            connection.reset();
            Some(StatusCode::INTERNAL_SERVER_ERROR.into_response())
        }
        Then::Hang => pending().await,
        Then::Proceed => None,
    }
}

#[expect(
    clippy::result_large_err,
    reason = "the error is the answer, made once a request"
)]
fn check(state: &State, headers: &HeaderMap, body: Result<Vec<u8>, TooLarge>) -> Result<Mail, Response> {
    let header = |name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let token = header(header::AUTHORIZATION)
        .strip_prefix("Bearer ")
        .unwrap_or_default();
    if !state.is_token_good(token) {
        let message = "Access token is missing, unknown or has expired.";
        return Err(graph_error(
            StatusCode::UNAUTHORIZED,
            "InvalidAuthenticationToken",
            message,
        ));
    }
    let Ok(body) = body else {
        let message = "The request exceeds the maximum size.";
        return Err(graph_error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        ));
    };
    let media_type = header(header::CONTENT_TYPE)
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if !media_type.eq_ignore_ascii_case("text/plain") {
        let message = "The simulator takes MIME only: send Content-Type text/plain.";
        return Err(graph_error(StatusCode::BAD_REQUEST, "BadRequest", message));
    }
    Mail::decode(body).map_err(|rubbish| match rubbish {
        Rubbish::NotBase64 => graph_error(
            StatusCode::BAD_REQUEST,
            "ErrorMimeContentInvalidBase64String",
            "Invalid base64 string for MIME content.",
        ),
        Rubbish::NoRecipients => graph_error(
            StatusCode::BAD_REQUEST,
            "ErrorInvalidRecipients",
            "At least one recipient isn't valid., A message can't be sent because it contains no recipients.",
        ),
    })
}

struct TooLarge;

/// The whole body; it is read to its end even when it is too large, so that the client gets to
/// read the answer and not a broken pipe.
async fn read(body: Body, limit: usize) -> Result<Vec<u8>, TooLarge> {
    let mut bytes = Vec::new();
    let mut too_large = false;
    let mut chunks = body.into_data_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        too_large |= bytes.len() + chunk.len() > limit;
        if !too_large {
            bytes.extend_from_slice(&chunk);
        }
    }
    if too_large { Err(TooLarge) } else { Ok(bytes) }
}

async fn drain(body: Body) {
    let _ = read(body, 0).await;
}
