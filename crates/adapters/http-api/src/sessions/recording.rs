//! `GET /partner/browser-session/{id}/recording`

use actix_web::web;
use ports::driving::{RecordingView as Found, SessionService};
use serde::Serialize;
use utoipa::ToSchema;

use super::session_id;
use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    openapi::RecordingStatus,
};

/// Get a recording
///
/// The video of a session that ended in `ERROR`. Poll while `status` is `pending` or `in_progress`.
/// When it is `completed`, `recordingUrl` is a link to an MP4 file that works for seven days; each
/// request returns a new link. If there is no recording, `error` says why.
#[utoipa::path(
    get,
    path = "/partner/browser-session/{id}/recording",
    tag = "Sessions",
    operation_id = "getRecording",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The recording.", body = Envelope<Recording>),
        (status = 404, description = "No session of this key has this id, it did not end in `ERROR`, or it never started a browser.", body = ErrorBody),
    ),
)]
pub(crate) async fn recording(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Recording>, ApiError> {
    let recording = sessions.recording(&caller, session_id(&path)?).await?;
    let (status, recording_url, error) = match recording {
        Found::Pending => ("pending", None, None),
        Found::InProgress => ("in_progress", None, None),
        Found::Completed(url) => ("completed", Some(url), None),
        Found::Failed(why) => ("completed", None, Some(why)),
    };
    Ok(ok(Recording { status, recording_url, error }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the specification's names")]
pub(crate) struct Recording {
    #[schema(value_type = RecordingStatus)]
    status: &'static str,
    #[schema(required = true)]
    recording_url: Option<String>,
    #[schema(required = true)]
    error: Option<String>,
}
