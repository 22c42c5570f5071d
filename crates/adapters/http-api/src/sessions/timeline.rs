//! `GET /partner/browser-session/{id}/events`, the timeline of a session.

use actix_web::web;
use domain::{session::Status, webhook::wire_time};
use ports::{driving::SessionService, session_store::TimelineEntry};
use serde::Serialize;
use utoipa::ToSchema;

use super::session_id;
use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    openapi::{ErrorCodeName, SessionStatus},
};

/// Get the timeline
///
/// The events of the session, oldest first.
#[utoipa::path(
    get,
    path = "/partner/browser-session/{id}/events",
    tag = "Sessions",
    operation_id = "getTimeline",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The timeline.", body = Envelope<Vec<Line>>),
        (status = 404, description = "No session of this key has this id.", body = ErrorBody),
    ),
)]
pub(crate) async fn timeline(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Vec<Line>>, ApiError> {
    let entries = sessions.timeline(&caller, session_id(&path)?).await?;
    Ok(ok(entries.into_iter().map(Line::from).collect()))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TimelineLine)]
pub(crate) struct Line {
    #[schema(format = DateTime)]
    at: String,
    event: String,
    /// The status after the event.
    #[schema(value_type = SessionStatus)]
    status: Status,
    #[schema(required = true, value_type = Option<ErrorCodeName>)]
    error_code: Option<String>,
    /// Details of the event, such as why a link was not delivered.
    #[schema(required = true)]
    detail: Option<String>,
}

impl From<TimelineEntry> for Line {
    fn from(entry: TimelineEntry) -> Self {
        let TimelineEntry { at, event, status, error_code, detail, .. } = entry;
        Self { at: wire_time(at), event, status, error_code, detail }
    }
}
