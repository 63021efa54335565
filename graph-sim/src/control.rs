//! What Graph does not have: `/sim/…`, to look at the simulator and to tell it to misbehave.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State as From};
use axum::http::StatusCode;
use serde::Deserialize;

use crate::fault::{DelayRange, Fault};
use crate::mail::StoredMessage;
use crate::report::Report;
use crate::state::State;

#[derive(Deserialize)]
pub(crate) struct Wanted {
    mailbox: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Advance {
    ms: u64,
}

pub(crate) async fn messages(
    From(state): From<State>,
    Query(wanted): Query<Wanted>,
) -> Json<Vec<StoredMessage>> {
    Json(state.messages(wanted.mailbox.as_deref()))
}

pub(crate) async fn report(From(state): From<State>) -> Json<Report> {
    Json(state.report())
}

pub(crate) async fn add_fault(
    From(state): From<State>,
    Json(fault): Json<Fault>,
) -> Result<StatusCode, (StatusCode, String)> {
    let added = state.add_fault(fault);
    added
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

pub(crate) async fn clear_faults(From(state): From<State>) -> StatusCode {
    state.clear_faults();
    StatusCode::NO_CONTENT
}

pub(crate) async fn set_latency(
    From(state): From<State>,
    Json(latency): Json<DelayRange>,
) -> Result<StatusCode, (StatusCode, String)> {
    let set = state.set_latency(latency);
    set.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

pub(crate) async fn advance(From(state): From<State>, Json(by): Json<Advance>) -> StatusCode {
    state.advance(Duration::from_millis(by.ms));
    StatusCode::NO_CONTENT
}
