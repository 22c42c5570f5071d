//! The team's sessions: a list, and the timeline of each.

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
    web,
};
use domain::{
    api_key::Environment,
    error_code::ErrorCode,
    error_remedy::remedy,
    id::{PlatformId, SessionId},
    session::{IssuedAttestation, Outcome, Status},
    workflow::AttestMode,
};
use ports::{
    driving::{PortalError, RecordingView, SessionDetails, SessionSearch, TeamSession},
    session_store::TimelineEntry,
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    deliveries,
    documentation::ErrorLink,
    error::{PageError, redirect},
    forms::CsrfForm,
    message::{Message, message},
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
    session_export,
    session_search::SessionQuery,
};

const HERE: &str = "/portal/sessions";
const CSV: &str = "/portal/sessions.csv";
/// Sessions per page.
const ON_A_PAGE: u16 = 50;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(list))
        .route(CSV, reading(session_export::export))
        .route("/portal/sessions/{id}", reading(show))
        .route("/portal/sessions/{id}/attestation", reading(attestation))
        .route("/portal/sessions/{id}/end", submitting(end));
}

#[derive(Serialize)]
struct SessionListRow {
    id: String,
    reference: Option<String>,
    status: &'static str,
    error: Option<ErrorLink>,
    platform: String,
    environment: &'static str,
    key: String,
    created: PageTime,
    closed: Option<PageTime>,
}

impl From<TeamSession> for SessionListRow {
    fn from(session: TeamSession) -> Self {
        let TeamSession { listed, platform, key } = session;
        Self {
            id: listed.summary.id.to_string(),
            reference: listed.reference,
            status: listed.summary.status.as_str(),
            error: listed.error_code.map(ErrorLink::from),
            platform,
            environment: listed.environment.as_str(),
            key,
            created: listed.summary.created_at.into(),
            closed: listed.summary.closed_at.map(PageTime::from),
        }
    }
}

/// The values that the filters offer.
#[derive(Serialize)]
struct FilterOptions {
    statuses: Vec<&'static str>,
    errors: Vec<(&'static str, &'static str)>,
    /// The identifier and the name of each.
    platforms: Vec<(String, String)>,
    environments: [&'static str; 2],
}

impl FilterOptions {
    fn new(platforms: Vec<(PlatformId, String)>) -> Self {
        let environments = [Environment::Production, Environment::Development];
        Self {
            statuses: Status::ALL.iter().map(|status| status.as_str()).collect(),
            errors: ErrorCode::ALL.iter().map(|code| (code.as_str(), code.as_str())).collect(),
            platforms: platforms.into_iter().map(|(id, name)| (id.0.to_string(), name)).collect(),
            environments: environments.map(Environment::as_str),
        }
    }
}

async fn list(
    portal: web::Data<Portal>,
    query: web::Query<SessionQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let mut query = query.into_inner();
    if let Ok(id) = query.find.trim().parse::<SessionId>() {
        return Ok(redirect(&format!("{HERE}/{id}")));
    }
    let (filter, after) = query.read();
    let search = SessionSearch { filter, after, limit: ON_A_PAGE };
    let found = portal.sessions.team_sessions(&signed.0, search).await?;
    let platforms = portal.sessions.platforms(&signed.0).await?;
    let rows: Vec<_> = found.sessions.into_iter().map(SessionListRow::from).collect();
    Ok(PortalPage::of_team("sessions.html", message("Sessions"), "sessions", &signed.0)
        .with("sessions", rows)
        .with("options", FilterOptions::new(platforms))
        .with("filtered", query.is_filtered())
        .with("older", found.next.map(|next| query.path(HERE, Some(next))))
        .with("newest", after.map(|_| query.path(HERE, None)))
        .with("csv", query.path(CSV, None))
        .with("max_rows", session_export::MAX_ROWS)
        .with("query", query)
        .into_response())
}

/// A session as its page shows it, without data of its applicant.
#[derive(Serialize)]
struct SessionPage {
    id: String,
    status: &'static str,
    progress: u8,
    attempts: u8,
    max_attempts: u8,
    over: bool,
    platform: String,
    key: String,
    reference: Option<String>,
    support_reference: String,
    receiver: Option<String>,
    country: String,
    created: PageTime,
    expires: PageTime,
    closed: Option<PageTime>,
    erased: bool,
    attestation: Option<AttestedField>,
}

/// Why a session did not complete, and what the partner can do.
#[derive(Serialize)]
struct Reason {
    error: ErrorLink,
    meaning: &'static str,
    remedy: &'static str,
    /// The step of the platform's workflow at which the session failed.
    step: Option<String>,
}

impl Reason {
    fn new(code: ErrorCode, step: Option<String>) -> Self {
        Self {
            error: ErrorLink::from(code.as_str().to_owned()),
            meaning: code.partner_text(),
            remedy: remedy(code),
            step,
        }
    }
}

/// The attestation of a session, as its page shows it.
#[derive(Serialize)]
struct AttestedField {
    proof: String,
    fields: Vec<String>,
    mode: &'static str,
}

impl From<&IssuedAttestation> for AttestedField {
    fn from(attestation: &IssuedAttestation) -> Self {
        Self {
            proof: attestation.proof.as_str().to_owned(),
            fields: attestation.fields.clone(),
            mode: attestation.mode.map_or("", AttestMode::as_str),
        }
    }
}

#[derive(Serialize)]
struct TimelineListRow {
    at: PageTime,
    event: String,
    status: &'static str,
    error: Option<ErrorLink>,
    node: Option<String>,
    detail: Option<String>,
}

impl From<TimelineEntry> for TimelineListRow {
    fn from(entry: TimelineEntry) -> Self {
        Self {
            at: entry.at.into(),
            event: entry.event,
            status: entry.status.as_str(),
            error: entry.error_code.map(ErrorLink::from),
            node: entry.node,
            detail: entry.detail,
        }
    }
}

#[derive(Serialize)]
struct RecordingLink {
    state: Message,
    coming: bool,
    link: Option<String>,
    why: Option<Message>,
}

impl From<RecordingView> for RecordingLink {
    fn from(recording: RecordingView) -> Self {
        let of = |state, coming| Self { state, coming, link: None, why: None };
        match recording {
            RecordingView::Pending => of(message("Pending"), true),
            RecordingView::InProgress => of(message("Processing"), true),
            RecordingView::Completed(link) => {
                Self { link: Some(link), ..of(message("Ready"), false) }
            }
            RecordingView::Failed(why) => {
                Self { why: Some(Message::error(why)), ..of(message("Not available"), false) }
            }
        }
    }
}

async fn show(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let whole = portal.sessions.team_session(&signed.0, id).await?;
    let deliveries = portal.webhooks.session_deliveries(&signed.0, id).await?;
    let told: Vec<_> = deliveries.iter().map(deliveries::DeliveryListRow::from).collect();
    let SessionDetails { session, platform, key, timeline, recording, support_reference } = whole;
    let attestation = session.state.outcome().and_then(Outcome::attestation);
    let code = session.state.outcome().and_then(Outcome::error_code);
    let step = timeline.iter().rev().find_map(|entry| entry.node.clone());
    let reason = code.map(|code| Reason::new(code, step));
    let face = SessionPage {
        id: session.id.to_string(),
        status: session.status().as_str(),
        progress: session.progress.percent(),
        attempts: session.state.attempts(),
        max_attempts: session.terms.max_attempts.get(),
        over: session.state.is_closed(),
        platform,
        key,
        reference: session.terms.external_reference.clone(),
        support_reference,
        receiver: session.terms.receiver_id.map(|id| id.to_string()),
        country: session.terms.location.country.clone(),
        created: session.created_at.into(),
        expires: session.expires_at.into(),
        closed: session.closed_at.map(PageTime::from),
        erased: session.erased_at.is_some(),
        attestation: attestation.map(AttestedField::from),
    };
    let lines: Vec<_> = timeline.into_iter().map(TimelineListRow::from).collect();
    let page = PortalPage::of_team("session.html", message("Session"), "sessions", &signed.0);
    let page = match &recording {
        Some(RecordingView::Completed(link)) => page.with_recording(link),
        _ => page,
    };
    let film = recording.map(RecordingLink::from);
    let live = !face.over || film.as_ref().is_some_and(|film| film.coming);
    Ok(page
        .with("live", live)
        .with("reason", reason)
        .with("session", face)
        .with("timeline", lines)
        .with("deliveries", told)
        .with("film", film)
        .into_response())
}

/// Serves the portable attestation, as the partner API does.
async fn attestation(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let found = portal.sessions.team_attestation(&signed.0, id).await?;
    let name = format!("attachment; filename=\"attestation-{id}.cbor\"");
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/cbor"))
        .insert_header((CONTENT_DISPOSITION, name))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(found.file))
}

async fn end(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    portal.sessions.end_session(&submitted.user, id).await?;
    Ok(redirect(&format!("/portal/sessions/{id}")))
}

fn read(id: &str) -> Result<SessionId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("session"))
}
