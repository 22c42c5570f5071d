//! `DELETE /partner/browser-session/{id}/data`

use actix_web::web;
use domain::{id::SessionId, session::Status, webhook::wire_time};
use ports::driving::SessionService;
use serde::Serialize;
use utoipa::ToSchema;

use super::session_id;
use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    openapi::SessionStatus,
};

/// Erase data
///
/// Erases what is stored about the applicant: collected data, contact and metadata, also in pending
/// deliveries. An open session is terminated first. The session stays readable with its status.
#[utoipa::path(
    delete,
    path = "/partner/browser-session/{id}/data",
    tag = "Sessions",
    operation_id = "eraseData",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The data is erased.", body = Envelope<Erased>),
        (status = 404, description = "No session of this key has this id.", body = ErrorBody),
    ),
)]
pub(crate) async fn erase(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Erased>, ApiError> {
    let session = sessions.erase(&caller, session_id(&path)?).await?;
    Ok(ok(Erased {
        session_id: session.id,
        status: session.status(),
        data_erased_at: session.erased_at.map(wire_time),
    }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Erased {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = SessionStatus)]
    status: Status,
    #[schema(required = true, format = DateTime)]
    data_erased_at: Option<String>,
}
