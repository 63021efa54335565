//! `POST /{tenant}/oauth2/v2.0/token`, as Microsoft's page "OAuth 2.0 client credentials flow" has it.

use axum::Json;
use axum::extract::rejection::FormRejection;
use axum::extract::{Extension, Form, State as From};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::connection::Connection;
use crate::fault::{Moment, Target};
use crate::graph_error::entra_error;
use crate::send_mail::suffer;
use crate::state::State;

const SCOPE: &str = "https://graph.microsoft.com/.default";

#[derive(Deserialize)]
pub(crate) struct TokenRequest {
    grant_type: Option<String>,
    scope: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

pub(crate) async fn token(
    From(state): From<State>,
    Extension(connection): Extension<Connection>,
    request: Result<Form<TokenRequest>, FormRejection>,
) -> Response {
    state.token_requested();
    for at in [Moment::Head, Moment::Body] {
        let strike = state.strike(at, Target::Token, "");
        if let Some(response) = suffer(strike, Target::Token, &connection).await {
            return response;
        }
    }
    let Ok(Form(request)) = request else {
        return bad_request(
            "invalid_request",
            "AADSTS900144: The request body must be a form.",
        );
    };
    if let Err(refusal) = check(&state, &request) {
        return refusal;
    }
    let token = state.issue_token();
    let strike = state.strike(Moment::Accepted, Target::Token, "");
    if let Some(response) = suffer(strike, Target::Token, &connection).await {
        return response;
    }
    let seconds = state.settings.token_lifetime.as_secs();
    let body = json!({
        "token_type": "Bearer",
        "expires_in": seconds,
        "ext_expires_in": seconds,
        "access_token": token,
    });
    Json(body).into_response()
}

#[expect(
    clippy::result_large_err,
    reason = "the error is the answer, made once a request"
)]
fn check(state: &State, request: &TokenRequest) -> Result<(), Response> {
    if request.grant_type.as_deref() != Some("client_credentials") {
        return Err(bad_request(
            "unsupported_grant_type",
            "AADSTS70003: The app requested an unsupported grant type. The simulator takes client_credentials.",
        ));
    }
    if request.scope.as_deref() != Some(SCOPE) {
        return Err(bad_request(
            "invalid_scope",
            "AADSTS70011: The provided value for the input parameter 'scope' is not valid. \
             It must be https://graph.microsoft.com/.default.",
        ));
    }
    let (Some(id), Some(secret)) = (&request.client_id, &request.client_secret) else {
        return Err(bad_request(
            "invalid_request",
            "AADSTS900144: The request body must contain 'client_id' and 'client_secret'.",
        ));
    };
    match &state.settings.client {
        Some((known, _)) if known != id => Err(bad_request(
            "unauthorized_client",
            "AADSTS700016: Application was not found in the directory.",
        )),
        Some((_, known)) if known != secret => Err(entra_error(
            StatusCode::UNAUTHORIZED,
            "invalid_client",
            "AADSTS7000215: Invalid client secret provided.",
        )),
        _ => Ok(()),
    }
}

fn bad_request(error: &str, description: &str) -> Response {
    entra_error(StatusCode::BAD_REQUEST, error, description)
}
