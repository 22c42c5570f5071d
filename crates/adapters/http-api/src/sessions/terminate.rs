//! `DELETE /partner/browser-session/{id}`

use actix_web::web;
use domain::{id::SessionId, session::Status};
use ports::driving::SessionService;
use serde::Serialize;
use utoipa::ToSchema;

use super::Named;
use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    openapi::SessionStatus,
};

/// Terminate a session
///
/// Ends an open session at once. A session that has ended does not change.
#[utoipa::path(
    delete,
    path = "/partner/browser-session/{id}",
    tag = "Sessions",
    operation_id = "terminateSession",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The resulting or existing status.", body = Envelope<Terminated>),
        (status = 404, description = "No session of this key has this id.", body = ErrorBody),
    ),
)]
pub(crate) async fn terminate(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    Named(id): Named,
) -> Result<Success<Terminated>, ApiError> {
    let session = sessions.terminate(&caller, id.ok_or(ApiError::SessionNotFound)?).await?;
    Ok(ok(Terminated { session_id: session.id, status: session.status() }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Terminated {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = SessionStatus)]
    status: Status,
}
