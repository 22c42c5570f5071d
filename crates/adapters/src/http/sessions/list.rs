//! `GET /partner/browser-sessions`

use actix_web::{HttpRequest, web};
use domain::{id::SessionId, request::ListQuery, session::Status, webhook::wire_time};
use ports::{driving::SessionService, session_store::Summary};
use serde::Serialize;

use crate::http::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
    query::Query,
};

pub(super) async fn list(
    request: HttpRequest,
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
) -> Result<Success<List>, ApiError> {
    let raw = Query::read(request.query_string(), &["status", "limit", "offset"])?;
    let query = ListQuery::read(raw.get("status"), raw.get("limit"), raw.get("offset"))?;
    let (items, total) = sessions.list(&caller, query).await?;
    let sessions = items.into_iter().map(Item::from).collect();
    let page = query.page;
    Ok(ok(List { sessions, total, limit: page.limit, offset: page.offset }))
}

#[derive(Serialize)]
pub(super) struct List {
    sessions: Vec<Item>,
    total: i64,
    limit: i64,
    offset: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    session_id: SessionId,
    status: Status,
    platform_id: i32,
    created_at: String,
    completed_at: Option<String>,
}

impl From<Summary> for Item {
    fn from(summary: Summary) -> Self {
        Self {
            session_id: summary.id,
            status: summary.status,
            platform_id: summary.platform.0,
            created_at: wire_time(summary.created_at),
            completed_at: summary.closed_at.map(wire_time),
        }
    }
}
