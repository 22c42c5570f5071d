//! `GET /partner/browser-session/{id}/events`: what happened to a session, and when.

use actix_web::web;
use domain::{session::Status, webhook::wire_time};
use ports::{driving::SessionService, session_store::Entry};
use serde::Serialize;

use super::session_id;
use crate::http::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
};

pub(super) async fn timeline(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Vec<Line>>, ApiError> {
    let entries = sessions.timeline(&caller, session_id(&path)?).await?;
    Ok(ok(entries.into_iter().map(Line::from).collect()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    at: String,
    event: String,
    /// The status from then on.
    status: Status,
    error_code: Option<String>,
}

impl From<Entry> for Line {
    fn from(entry: Entry) -> Self {
        let Entry { at, event, status, error_code } = entry;
        Self { at: wire_time(at), event, status, error_code }
    }
}
