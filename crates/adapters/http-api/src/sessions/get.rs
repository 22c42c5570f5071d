//! `GET /partner/browser-session/{id}`, which partners poll.

use actix_web::{HttpRequest, web};
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    session::{Outcome, PendingPrompt, State, Status},
    webhook::wire_time,
    workflow::AttestMode,
};
use ports::driving::{Authenticator, PolledSession, RequestPurpose, SessionView};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Named, wire::WireLocation};
use crate::{
    caller::{admitted, credentials},
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    icons::PublicUrl,
    openapi::{ActionKind, AttestationType, ErrorCodeName, RETRY_ACTION, SessionStatus},
};

/// Get a session
///
/// Every key is present. A value that does not apply yet is `null`.
#[utoipa::path(
    get,
    path = "/partner/browser-session/{id}",
    tag = "Sessions",
    operation_id = "getSession",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The session.", body = Envelope<Full>),
        (status = 404, description = "No session of this key has this id.", body = ErrorBody),
    ),
)]
pub(crate) async fn get(
    request: HttpRequest,
    authenticator: web::Data<dyn Authenticator>,
    public_url: web::Data<PublicUrl>,
    Named(id): Named,
) -> Result<Success<Full>, ApiError> {
    let credentials = credentials(&request, RequestPurpose::Any);
    let (outcome, polled) = authenticator.poll(credentials, id).await?;
    admitted(&request, outcome)?;
    Ok(ok(Full::new(polled.ok_or(ApiError::SessionNotFound)?, &public_url)))
}

/// A session. Every key is present; a value that does not apply yet is `null`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
pub(crate) struct Full {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = SessionStatus)]
    status: Status,
    progress: u8,
    embed_url: String,
    /// A page on which your staff can watch while the browser runs, without acting. The link works
    /// for five minutes at most. No frames are shown while the applicant has to act.
    #[schema(required = true)]
    stream_url: Option<String>,
    platform_id: i32,
    #[schema(required = true)]
    platform: Option<WirePlatform>,
    location: WireLocation,
    preferred_region: &'static str,
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required = true, format = DateTime)]
    completed_at: Option<String>,
    #[schema(required = true)]
    error_message: Option<&'static str>,
    #[schema(required = true, value_type = Option<ErrorCodeName>)]
    error_code: Option<&'static str>,
    /// Whether there is an attestation. It proves the values of `attestedFields` only.
    has_attestation: bool,
    /// The fields of `extractedData` whose values the attestation proves; the others are what the
    /// browser showed. Empty where there is no attestation.
    attested_fields: Vec<String>,
    /// How much the attestor saw: with `zktls-full` the attested fields and the structure of the
    /// response, with `zktls-request` everything but the applicant's cookies, with `full-reveal` the
    /// whole exchange, the cookies too.
    #[schema(required = true, value_type = Option<AttestationType>)]
    attestation_type: Option<&'static str>,
    /// As given at creation. The attestation repeats it.
    #[schema(required = true)]
    attestation_challenge: Option<String>,
    /// The data that the applicant agreed to share, by the field names of the platform's definition.
    #[schema(required = true, value_type = Option<Object>)]
    extracted_data: Option<Map<String, Value>>,
    /// The fields that the definition has and that could not be read. Empty unless the session ended
    /// in `PARTIAL_COMPLETE`.
    missing: Vec<String>,
    #[schema(required = true)]
    external_reference_id: Option<String>,
    /// The attempts that the applicant has started.
    attempts: u8,
    /// The attempts that the applicant has, as given at creation.
    max_attempts: u8,
    #[schema(required = true)]
    next_action: Option<NextAction>,
    #[schema(required = true, format = DateTime)]
    data_erased_at: Option<String>,
}

/// What the applicant has to do.
#[derive(Serialize, ToSchema)]
struct NextAction {
    #[schema(value_type = ActionKind)]
    kind: &'static str,
    /// Where the platform has sent a code, if its page says so: the channel and the end of the address.
    #[schema(required = true, example = "sms ***56")]
    hint: Option<String>,
    #[schema(format = DateTime)]
    deadline: String,
}

impl From<&PendingPrompt> for NextAction {
    fn from(ask: &PendingPrompt) -> Self {
        let deadline = wire_time(ask.deadline);
        Self { kind: ask.kind.as_str(), hint: ask.hint.clone(), deadline }
    }
}

impl NextAction {
    fn of(state: &State) -> Option<Self> {
        if let Some((_, until)) = state.offered_retry() {
            return Some(Self { kind: RETRY_ACTION, hint: None, deadline: wire_time(until) });
        }
        state.ask().map(Self::from)
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SessionPlatform)]
struct WirePlatform {
    id: i32,
    name: String,
    display_name: String,
    icon: String,
    login_url: String,
}

impl Full {
    fn new(PolledSession { view, platform }: PolledSession, public_url: &PublicUrl) -> Self {
        let SessionView { session, embed_url, stream_url } = view;
        let outcome = session.state.outcome();
        let code = outcome.and_then(Outcome::error_code);
        let attestation = outcome.and_then(Outcome::attestation);
        Self {
            session_id: session.id,
            status: session.status(),
            progress: session.progress.percent(),
            embed_url,
            stream_url,
            platform_id: session.terms.platform.0,
            platform: platform.map(|platform| WirePlatform {
                id: platform.id.0,
                name: platform.name,
                display_name: platform.display_name,
                icon: public_url.icon(&platform.icon),
                login_url: platform.login_url,
            }),
            expires_at: wire_time(session.expires_at),
            created_at: wire_time(session.created_at),
            completed_at: session.closed_at.map(wire_time),
            error_message: code.map(ErrorCode::partner_text),
            error_code: code.map(ErrorCode::as_str),
            has_attestation: attestation.is_some(),
            attestation_type: attestation.and_then(|it| it.mode).map(AttestMode::as_str),
            attested_fields: attestation.map(|it| it.fields.clone()).unwrap_or_default(),
            extracted_data: session.data().cloned(),
            missing: outcome.map(|it| it.missing().to_vec()).unwrap_or_default(),
            attempts: session.state.attempts(),
            max_attempts: session.terms.max_attempts.get(),
            next_action: NextAction::of(&session.state),
            data_erased_at: session.erased_at.map(wire_time),
            preferred_region: session.region_in_use().as_str(),
            location: session.terms.location.into(),
            external_reference_id: session.terms.external_reference,
            attestation_challenge: session.terms.attestation_challenge.map(String::from),
        }
    }
}
