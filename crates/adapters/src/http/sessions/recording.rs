//! `GET /partner/browser-session/{id}/recording`

use actix_web::web;
use domain::session::{Outcome, State};
use ports::driving::SessionService;
use serde::Serialize;
use utoipa::ToSchema;

use super::session_id;
use crate::http::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, Body},
};

/// Get a recording
///
/// A session that ended in ERROR. This deployment records nothing, and says so in the form that stops
/// a poller.
#[utoipa::path(
    get,
    path = "/partner/browser-session/{id}/recording",
    tag = "Sessions",
    operation_id = "getRecording",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The recording.", body = Envelope<Recording>),
        (status = 404, description = "There is no such session, it is another key's, it did not end in ERROR, or no browser ran.", body = Body),
    ),
)]
pub(in crate::http) async fn recording(
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the specification's names")]
pub(in crate::http) struct Recording {
    status: &'static str,
    #[schema(required = true)]
    recording_url: Option<String>,
    #[schema(required = true)]
    error: Option<&'static str>,
}
