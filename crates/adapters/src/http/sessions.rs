//! `/partner/browser-session` and `/partner/browser-sessions`.

use actix_web::{http::StatusCode, web};
use chrono::{DateTime, Utc};
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    platform::Platform,
    request::{Invalid, ListQuery, Location, NewSession},
    session::{Outcome, Session, State, Status},
    webhook::wire_time,
};
use ports::driving::{SessionFace, SessionService};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/browser-session").route(web::post().to(create)))
        .service(web::resource("/browser-sessions").route(web::get().to(list)))
        .service(
            web::resource("/browser-session/{id}")
                .route(web::get().to(read))
                .route(web::delete().to(terminate)),
        )
        .service(web::resource("/browser-session/{id}/recording").route(web::get().to(recording)));
}

async fn create(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    body: web::Bytes,
) -> Result<Success<Created>, ApiError> {
    let body: Value =
        serde_json::from_slice(&body).map_err(|_| Invalid::one("the body must be valid JSON"))?;
    let face = sessions.create(&caller, NewSession::read(&body)?).await?;
    Ok(Success(StatusCode::CREATED, Created::from(face)))
}

async fn read(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Full>, ApiError> {
    let (face, platform) = sessions.read(&caller, session_id(&path)?).await?;
    Ok(ok(Full::of(face, platform)))
}

async fn list(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    query: web::Query<RawList>,
) -> Result<Success<List>, ApiError> {
    let raw = query.into_inner();
    let query =
        ListQuery::read(raw.status.as_deref(), raw.limit.as_deref(), raw.offset.as_deref())?;
    let (items, total) = sessions.list(&caller, query).await?;
    let sessions = items.iter().map(Item::from).collect();
    let page = query.page;
    Ok(ok(List { sessions, total, limit: page.limit, offset: page.offset }))
}

async fn terminate(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Terminated>, ApiError> {
    let session = sessions.terminate(&caller, session_id(&path)?).await?;
    Ok(ok(Terminated { session_id: session.id, status: session.status() }))
}

/// This deployment records nothing, and says so in the form that stops a poller.
async fn recording(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Recording>, ApiError> {
    let (face, _) = sessions.read(&caller, session_id(&path)?).await?;
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

/// A path that is no uuid names no session.
fn session_id(path: &str) -> Result<SessionId, ApiError> {
    path.parse().map_err(|_| ApiError::SessionNotFound)
}

#[derive(Deserialize)]
struct RawList {
    status: Option<String>,
    limit: Option<String>,
    offset: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the specification's names")]
struct Created {
    session_id: SessionId,
    status: Status,
    embed_url: String,
    platform_id: i32,
    expires_at: String,
    created_at: String,
    location: WireLocation,
    preferred_region: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_reference_id: Option<String>,
}

/// `state` and `region` are the same thing under the two names that are in use.
#[derive(Serialize)]
struct WireLocation {
    country: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<String>,
}

impl From<Location> for WireLocation {
    fn from(location: Location) -> Self {
        let Location { country, region, city } = location;
        Self { country, state: region.clone(), region, city }
    }
}

impl From<SessionFace> for Created {
    fn from(SessionFace { session, embed_url }: SessionFace) -> Self {
        Self {
            session_id: session.id,
            status: session.status(),
            embed_url,
            platform_id: session.order.platform.0,
            expires_at: wire_time(session.expires_at),
            created_at: wire_time(session.created_at),
            preferred_region: session.order.worker_region.as_str(),
            location: session.order.location.into(),
            external_reference_id: session.order.external_reference,
        }
    }
}

/// Every key is there; what does not apply yet is `null`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Full {
    session_id: SessionId,
    status: Status,
    progress: u8,
    embed_url: String,
    stream_url: Option<String>,
    platform_id: i32,
    platform: Option<WirePlatform>,
    location: WireLocation,
    preferred_region: &'static str,
    expires_at: String,
    created_at: String,
    completed_at: Option<String>,
    error_message: Option<&'static str>,
    error_code: Option<&'static str>,
    has_attestation: bool,
    extracted_data: Option<Map<String, Value>>,
    external_reference_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePlatform {
    id: i32,
    name: String,
    display_name: String,
    icon: String,
    login_url: String,
}

impl Full {
    fn of(SessionFace { session, embed_url }: SessionFace, platform: Option<Platform>) -> Self {
        let outcome = session.state.outcome();
        let code = outcome.and_then(Outcome::error_code);
        Self {
            session_id: session.id,
            status: session.status(),
            progress: session.progress.percent(),
            embed_url,
            stream_url: None,
            platform_id: session.order.platform.0,
            platform: platform.map(|platform| WirePlatform {
                id: platform.id.0,
                name: platform.name,
                display_name: platform.display_name,
                icon: platform.icon,
                login_url: platform.login_url,
            }),
            expires_at: wire_time(session.expires_at),
            created_at: wire_time(session.created_at),
            completed_at: session.closed_at.map(wire_time),
            error_message: code.map(ErrorCode::partner_text),
            error_code: code.map(ErrorCode::as_str),
            has_attestation: outcome.and_then(Outcome::proof).is_some(),
            extracted_data: outcome.and_then(Outcome::data).cloned(),
            preferred_region: session.order.worker_region.as_str(),
            location: session.order.location.into(),
            external_reference_id: session.order.external_reference,
        }
    }
}

#[derive(Serialize)]
struct List {
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

impl From<&Session> for Item {
    fn from(session: &Session) -> Self {
        let wire = |moment: DateTime<Utc>| wire_time(moment);
        Self {
            session_id: session.id,
            status: session.status(),
            platform_id: session.order.platform.0,
            created_at: wire(session.created_at),
            completed_at: session.closed_at.map(wire),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    session_id: SessionId,
    status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the specification's names")]
struct Recording {
    status: &'static str,
    recording_url: Option<String>,
    error: Option<&'static str>,
}
