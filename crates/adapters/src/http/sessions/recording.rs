//! `GET /partner/browser-session/{id}/recording`

use actix_web::web;
use domain::session::{Outcome, State};
use ports::driving::SessionService;
use serde::Serialize;

use super::session_id;
use crate::http::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
};

/// This deployment records nothing, and says so in the form that stops a poller.
pub(super) async fn recording(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Recording>, ApiError> {
    let face = sessions.read(&caller, session_id(&path)?).await?;
    match face.session.state {
        State::Closed { outcome: Outcome::Error { .. }, ran: Some(_) } => Ok(ok(Recording {
            status: "completed",
            recording_url: None,
            error: Some("sessions are not recorded by this deployment"),
        })),
        State::Closed { .. }
        | State::Created { .. }
        | State::Initializing { .. }
        | State::Live { .. } => Err(ApiError::SessionNotFound),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the specification's names")]
pub(super) struct Recording {
    status: &'static str,
    recording_url: Option<String>,
    error: Option<&'static str>,
}
