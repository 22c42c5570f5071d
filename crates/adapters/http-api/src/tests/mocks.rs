//! Mocked use cases, and an authenticator for their caller.

use std::sync::Arc;

use actix_web::{body, http::Method, test};
use async_trait::async_trait;
use domain::{
    id::{ApiKeyId, PlatformId, SessionId, TeamId},
    rate::{RateLimit, RateWindow},
    session::Session,
};
use ports::{
    StoreError,
    driving::{
        AccessDenied, ApplicantConnection, ApplicantError, ApplicantService, AuthOutcome,
        JoinRequest, MailPreference, MailPreferenceService, MockAuthenticator, MockLookupService,
        MockSessionService, ObserveError, ObserverConnection, ObserverService, PageAppearance,
        PolledSession, Readiness, SessionView,
    },
    refusals::{RefusalClass, RefusalLog},
};
use serde_json::Value;
use testkit::sample;

use crate::{Services, TrustedProxies, app};

pub(super) fn session() -> Session {
    let owner = ApiKeyId::from_u128(2);
    let mut session = sample::opening(owner, PlatformId(7)).session;
    session.id = SessionId::from_u128(1);
    session
}

pub(super) fn face(session: Session) -> SessionView {
    let embed_url = "https://avouch.example/embed/1?token=t".into();
    SessionView { session, embed_url, stream_url: None }
}

pub(super) fn polled() -> PolledSession {
    PolledSession { view: face(session()), platform: None }
}

/// Authenticates every request, within a limit, and returns this result for polls.
pub(super) fn authenticator(
    found: fn() -> Result<Option<PolledSession>, StoreError>,
) -> MockAuthenticator {
    let mut authenticator = MockAuthenticator::new();
    authenticator.expect_authenticate().returning(|_| Ok(admission()));
    authenticator.expect_poll().returning(move |_, _| Ok((admission(), found()?)));
    authenticator
}

pub(super) fn admission() -> AuthOutcome {
    let limit = RateLimit { count: 120, seconds: 60 };
    AuthOutcome {
        window: Some(RateWindow { limit, used: 21, resets_at: sample::noon() }),
        result: Ok(sample::key(TeamId::from_u128(3))),
        key: None,
        catalogue: None,
    }
}

pub(super) fn refused() -> AuthOutcome {
    AuthOutcome {
        window: None,
        result: Err(AccessDenied::Unauthorized),
        key: None,
        catalogue: None,
    }
}

pub(super) fn services(authenticator: MockAuthenticator, sessions: MockSessionService) -> Services {
    let lookups = MockLookupService::new();
    Services {
        gate: Arc::new(authenticator),
        sessions: Arc::new(sessions),
        lookups: Arc::new(lookups),
        applicants: Arc::new(NoServices),
        watchers: Arc::new(NoServices),
        mails: Arc::new(NoServices),
        ready: Arc::new(NoServices),
        trusted_proxies: TrustedProxies::default(),
        public_url: "https://avouch.test".to_owned(),
        https: false,
        films: None,
        router: None,
        studios: None,
        refusals: Arc::new(NoServices),
        pages: None,
        metrics: None,
        spans: None,
    }
}

/// Services that find nothing and refuse nothing.
struct NoServices;

impl RefusalLog for NoServices {
    fn may_log(&self, _: RefusalClass) -> bool {
        true
    }
}

#[async_trait]
impl ApplicantService for NoServices {
    async fn join(
        &self,
        _: SessionId,
        _: JoinRequest,
    ) -> Result<Arc<dyn ApplicantConnection>, ApplicantError> {
        Err(ApplicantError::NotFound)
    }

    async fn appearance(
        &self,
        _: SessionId,
        _: &str,
        _: &[String],
    ) -> Result<PageAppearance, StoreError> {
        Ok(PageAppearance::default())
    }
}

#[async_trait]
impl ObserverService for NoServices {
    async fn watch(
        &self,
        _: SessionId,
        _: &str,
    ) -> Result<Arc<dyn ObserverConnection>, ObserveError> {
        Err(ObserveError::NotFound)
    }
}

#[async_trait]
impl MailPreferenceService for NoServices {
    async fn mails(&self, _: &str) -> Result<Option<MailPreference>, StoreError> {
        Ok(None)
    }

    async fn choose_mails(&self, _: &str, _: bool) -> Result<Option<MailPreference>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl Readiness for NoServices {
    async fn ready(&self) -> bool {
        false
    }
}

pub(super) async fn call(
    service: MockSessionService,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> String {
    call_with(authenticator(|| Ok(None)), service, method, path, body).await
}

pub(super) async fn call_with(
    authenticator: MockAuthenticator,
    service: MockSessionService,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> String {
    let app = test::init_service(app(services(authenticator, service))).await;
    let mut request = test::TestRequest::with_uri(path)
        .method(method.clone())
        .insert_header(("x-api-key", "avk_dev_key"));
    if let Some(body) = body {
        request = request.set_json(body);
    }
    shown(test::call_service(&app, request.to_request()).await).await
}

pub(super) async fn shown(
    response: actix_web::dev::ServiceResponse<impl body::MessageBody>,
) -> String {
    let status = response.status();
    let bytes = body::to_bytes(response.into_body()).await.ok().unwrap();
    format!("{status} {}", String::from_utf8_lossy(&bytes))
}
