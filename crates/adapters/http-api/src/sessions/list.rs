//! `GET /partner/browser-sessions`

use actix_web::{HttpRequest, web};
use domain::{id::SessionId, request::ListQuery, session::Status, webhook::wire_time};
use ports::{driving::SessionService, session_store::SessionSummary};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    openapi::SessionStatus,
    query::Query,
};

/// List sessions
///
/// The sessions that the calling key created, newest first.
#[utoipa::path(
    get,
    path = "/partner/browser-sessions",
    tag = "Sessions",
    operation_id = "listSessions",
    params(ListParams),
    responses(
        (status = 200, description = "A page of sessions.", body = Envelope<List>),
        (status = 400, description = "A parameter is invalid. `message` names it.", body = ErrorBody),
    ),
)]
pub(crate) async fn list(
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

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which `ListQuery` reads")]
struct ListParams {
    #[param(value_type = Option<SessionStatus>)]
    status: Option<String>,
    /// Results in a page.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<i64>,
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionList)]
pub(crate) struct List {
    sessions: Vec<Item>,
    total: i64,
    limit: i64,
    offset: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Item {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = SessionStatus)]
    status: Status,
    platform_id: i32,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required = true, format = DateTime)]
    completed_at: Option<String>,
}

impl From<SessionSummary> for Item {
    fn from(summary: SessionSummary) -> Self {
        Self {
            session_id: summary.id,
            status: summary.status,
            platform_id: summary.platform.0,
            created_at: wire_time(summary.created_at),
            completed_at: summary.closed_at.map(wire_time),
        }
    }
}
