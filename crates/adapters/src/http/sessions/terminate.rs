//! `DELETE /partner/browser-session/{id}`

use actix_web::web;
use domain::{id::SessionId, session::Status};
use ports::driving::SessionService;
use serde::Serialize;

use super::session_id;
use crate::http::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
};

pub(super) async fn terminate(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Terminated>, ApiError> {
    let session = sessions.terminate(&caller, session_id(&path)?).await?;
    Ok(ok(Terminated { session_id: session.id, status: session.status() }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Terminated {
    session_id: SessionId,
    status: Status,
}
