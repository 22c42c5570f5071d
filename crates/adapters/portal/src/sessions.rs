//! The team's sessions: a list, and the timeline of each.

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
    web,
};
use domain::{
    id::SessionId,
    request::{ListQuery, PageRequest as Part},
    session::{IssuedAttestation, Outcome, Status},
    workflow::AttestMode,
};
use ports::{
    driving::{PortalError, RecordingView, SessionDetails, TeamSession},
    session_store::TimelineEntry,
};
use serde::{Deserialize, Serialize};

use crate::{
    Portal,
    authenticated::Authenticated,
    deliveries,
    error::{PageError, redirect},
    forms::CsrfForm,
    methods::reading,
    page::{PageTime, PortalPage},
};

/// Sessions per page.
const ON_A_PAGE: i64 = 50;
/// The maximum offset of the list.
const FURTHEST: i64 = 1_000_000;
/// The maximum size of an external reference: 255 characters.
const LONGEST_REFERENCE: usize = 1020;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/sessions", reading().to(list))
        .route("/portal/sessions/{id}", reading().to(show))
        .route("/portal/sessions/{id}/attestation", reading().to(attestation))
        .route("/portal/sessions/{id}/end", web::post().to(end));
}

#[derive(Deserialize)]
struct SessionSearch {
    #[serde(default)]
    status: String,
    #[serde(default)]
    from: i64,
    /// The external reference or the identifier of a session.
    #[serde(default)]
    find: String,
}

#[derive(Serialize)]
struct SessionListRow {
    id: String,
    status: &'static str,
    platform: String,
    key: String,
    created: PageTime,
    closed: Option<PageTime>,
}

impl From<TeamSession> for SessionListRow {
    fn from(one: TeamSession) -> Self {
        Self {
            id: one.summary.id.to_string(),
            status: one.summary.status.as_str(),
            platform: one.platform,
            key: one.key,
            created: one.summary.created_at.into(),
            closed: one.summary.closed_at.map(PageTime::from),
        }
    }
}

async fn list(
    portal: web::Data<Portal>,
    asked: web::Query<SessionSearch>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let find = asked.find.trim();
    if let Ok(id) = find.parse::<SessionId>() {
        return Ok(redirect(&format!("/portal/sessions/{id}")));
    }
    let from = asked.from.clamp(0, FURTHEST);
    let reference = Some(find).filter(|find| !find.is_empty() && find.len() <= LONGEST_REFERENCE);
    // An invalid status is ignored; the page shows which filter applies.
    let status = asked.status.parse::<Status>().ok();
    // One more than is shown, to detect whether there are older ones.
    let page = Part { limit: ON_A_PAGE + 1, offset: from };
    let (query, called) = (ListQuery { status, page }, reference.map(str::to_owned));
    let found = portal.sessions.team_sessions(&signed.0, query, called).await?;
    let mut rows: Vec<_> = found.into_iter().map(SessionListRow::from).collect();
    let more = rows.len() > usize::try_from(ON_A_PAGE).unwrap_or(0);
    rows.truncate(usize::try_from(ON_A_PAGE).unwrap_or(0));
    let status = status.map_or("", Status::as_str);
    let part = |from: i64| {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("status", status)
            .append_pair("find", reference.unwrap_or_default())
            .append_pair("from", &from.to_string())
            .finish();
        format!("/portal/sessions?{query}")
    };
    let statuses: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
    Ok(PortalPage::of_team("sessions.html", "Sessions", "sessions", &signed.0)
        .with("sessions", rows)
        .with("statuses", statuses)
        .with("status", status)
        .with("find", reference.unwrap_or_default())
        .with("older", more.then(|| part(from + ON_A_PAGE)))
        .with("newer", (from > 0).then(|| part((from - ON_A_PAGE).max(0))))
        .into_response())
}

/// A session as its page shows it, without data of its applicant.
#[derive(Serialize)]
struct SessionPage {
    id: String,
    status: &'static str,
    progress: u8,
    over: bool,
    platform: String,
    key: String,
    reference: Option<String>,
    receiver: Option<String>,
    country: String,
    created: PageTime,
    expires: PageTime,
    closed: Option<PageTime>,
    erased: bool,
    attestation: Option<AttestedField>,
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
    error: Option<String>,
    node: Option<String>,
    detail: Option<String>,
}

impl From<TimelineEntry> for TimelineListRow {
    fn from(entry: TimelineEntry) -> Self {
        Self {
            at: entry.at.into(),
            event: event_label(&entry.event),
            status: entry.status.as_str(),
            error: entry.error_code,
            node: entry.node,
            detail: entry.detail,
        }
    }
}

/// Returns the label of an event: its name in the API as words in sentence case.
fn event_label(event: &str) -> String {
    let mut text = String::new();
    for letter in event.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
            text.extend(letter.to_lowercase());
        } else {
            text.push(letter);
        }
    }
    text
}

#[derive(Serialize)]
struct RecordingLink {
    state: &'static str,
    coming: bool,
    link: Option<String>,
    why: Option<String>,
}

impl From<RecordingView> for RecordingLink {
    fn from(recording: RecordingView) -> Self {
        let of = |state, coming| Self { state, coming, link: None, why: None };
        match recording {
            RecordingView::Pending => of("Pending", true),
            RecordingView::InProgress => of("Processing", true),
            RecordingView::Completed(link) => Self { link: Some(link), ..of("Ready", false) },
            RecordingView::Failed(why) => Self { why: Some(why), ..of("Not available", false) },
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
    let SessionDetails { session, platform, key, timeline, recording } = whole;
    let attestation = session.state.outcome().and_then(Outcome::attestation);
    let face = SessionPage {
        id: session.id.to_string(),
        status: session.status().as_str(),
        progress: session.progress.percent(),
        over: session.state.is_closed(),
        platform,
        key,
        reference: session.terms.external_reference.clone(),
        receiver: session.terms.receiver_id.map(|id| id.to_string()),
        country: session.terms.location.country.clone(),
        created: session.created_at.into(),
        expires: session.expires_at.into(),
        closed: session.closed_at.map(PageTime::from),
        erased: session.erased_at.is_some(),
        attestation: attestation.map(AttestedField::from),
    };
    let lines: Vec<_> = timeline.into_iter().map(TimelineListRow::from).collect();
    let page = PortalPage::of_team("session.html", "Session", "sessions", &signed.0);
    let page = match &recording {
        Some(RecordingView::Completed(link)) => page.with_recording(link),
        _ => page,
    };
    let film = recording.map(RecordingLink::from);
    let live = !face.over || film.as_ref().is_some_and(|film| film.coming);
    Ok(page
        .with("live", live)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_events_name_becomes_words() {
        assert_eq!(event_label("TerminatedByPartner"), "Terminated by partner");
        assert_eq!(event_label("Failed"), "Failed");
        assert_eq!(event_label(""), "");
    }
}
