//! `DELETE /partner/browser-session/{id}/data`

use actix_web::web;
use domain::{id::SessionId, session::Status, webhook::wire_time};
use ports::driving::SessionService;
use serde::Serialize;

use super::session_id;
use crate::http::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
};

/// Erases what is known about the applicant; an open session is terminated first.
pub(super) async fn erase(
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Erased {
    session_id: SessionId,
    status: Status,
    data_erased_at: Option<String>,
}
