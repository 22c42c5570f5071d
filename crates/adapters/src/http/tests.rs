//! What partners see on the wire, pinned; the use cases behind it are mocked.

use std::sync::Arc;

use actix_web::{
    body,
    http::{Method, header},
    test,
};
use async_trait::async_trait;
use domain::{
    id::{ApiKeyId, PlatformId, SessionId, TeamId},
    session::{Event, Session},
};
use ports::{
    StoreError,
    browser::Viewport,
    driving::{
        ApplicantError, ApplicantService, MockKeyCheck, MockLookups, MockSessionService,
        SessionError, SessionFace, Viewing,
    },
    places::Country,
};
use serde_json::{Value, json};
use testkit::sample;
use uuid::Uuid;

use super::{Readiness, Services, app};

const PATH: &str = "/v1/partner/browser-session/00000000-0000-0000-0000-000000000001";

#[actix_web::test]
async fn a_created_session_is_201_with_its_link() {
    let mut service = MockSessionService::new();
    service.expect_create().returning(|caller, request| {
        let mut session = session();
        session.owner = caller.id;
        session.order.platform = request.platform;
        Ok(SessionFace { session, embed_url: "https://avouch.example/embed/1?token=t".into() })
    });
    let body = json!({ "platformId": 7, "location": { "country": "US" } });
    let answer = call(service, &Method::POST, "/v1/partner/browser-session", Some(&body)).await;
    insta::assert_snapshot!(answer);
}

#[actix_web::test]
async fn every_fault_of_a_create_request_is_named() {
    let body = json!({
        "platformId": "7", "location": { "country": 1 }, "expiresInHours": 169,
        "generateAttestation": "yes", "preferredRegion": "moon", "externalReferenceId": "",
    });
    let service = MockSessionService::new();
    let answer = call(service, &Method::POST, "/v1/partner/browser-session", Some(&body)).await;
    insta::assert_snapshot!(answer);
}

#[actix_web::test]
async fn a_session_carries_every_key() {
    let mut service = MockSessionService::new();
    service.expect_read().returning(|_, _| Ok((face(session()), None)));
    insta::assert_snapshot!(call(service, &Method::GET, PATH, None).await);
}

#[actix_web::test]
async fn a_list_counts_what_fits() {
    let mut service = MockSessionService::new();
    service.expect_list().returning(|_, query| {
        assert_eq!((query.page.limit, query.page.offset), (2, 4));
        Ok((vec![session()], 5))
    });
    let path = "/v1/partner/browser-sessions?limit=2&offset=4&status=CREATED";
    insta::assert_snapshot!(call(service, &Method::GET, path, None).await);
}

#[actix_web::test]
async fn a_list_refuses_what_it_does_not_know() {
    let path = "/v1/partner/browser-sessions?limit=101&offset=-1&status=DONE";
    let answer = call(MockSessionService::new(), &Method::GET, path, None).await;
    insta::assert_snapshot!(answer);
}

#[actix_web::test]
async fn a_session_of_the_caller_is_terminated() {
    let mut service = MockSessionService::new();
    service
        .expect_terminate()
        .returning(|_, _| Ok(sample::moved(&session(), Event::TerminatedByPartner).session));
    insta::assert_snapshot!(call(service, &Method::DELETE, PATH, None).await);
}

#[actix_web::test]
async fn an_unknown_session_is_404_whatever_is_asked_of_it() {
    for (method, path) in [
        (Method::GET, PATH.to_owned()),
        (Method::DELETE, PATH.to_owned()),
        (Method::GET, format!("{PATH}/recording")),
        (Method::GET, "/v1/partner/browser-session/not-a-uuid".to_owned()),
    ] {
        let mut service = MockSessionService::new();
        service.expect_terminate().returning(|_, _| Err(SessionError::NotFound));
        service.expect_read().returning(|_, _| Err(SessionError::NotFound));
        let answer = call(service, &method, &path, None).await;
        let expected = r#"404 Not Found {"statusCode":404,"message":"Session not found"}"#;
        assert_eq!(answer, expected, "{method} {path}");
    }
}

#[actix_web::test]
async fn no_key_is_401_and_asks_nobody() {
    let app = test::init_service(app(services(MockSessionService::new()))).await;
    for headers in [None, Some(("x-api-key", "")), Some(("authorization", "Basic a2V5"))] {
        let mut request = test::TestRequest::get().uri(PATH);
        if let Some(header) = headers {
            request = request.insert_header(header);
        }
        let answer = shown(test::call_service(&app, request.to_request()).await).await;
        assert_eq!(answer, r#"401 Unauthorized {"statusCode":401,"message":"Unauthorized"}"#);
    }
}

#[actix_web::test]
async fn a_bearer_token_is_a_key_in_any_case_of_the_scheme() {
    let mut service = MockSessionService::new();
    service.expect_read().returning(|_, _| Ok((face(session()), None)));
    let app = test::init_service(app(services(service))).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let request = test::TestRequest::get()
            .uri(PATH)
            .insert_header((header::AUTHORIZATION, format!("{scheme} avk_dev_key")));
        assert_eq!(test::call_service(&app, request.to_request()).await.status(), 200);
    }
}

#[actix_web::test]
async fn a_cause_stays_inside() {
    let mut service = MockSessionService::new();
    service
        .expect_read()
        .returning(|_, _| Err(StoreError::new("find a session", "secret detail").into()));
    let answer = call(service, &Method::GET, PATH, None).await;
    let expected =
        r#"500 Internal Server Error {"statusCode":500,"message":"Internal Server Error"}"#;
    assert_eq!(answer, expected);
}

#[actix_web::test]
async fn what_the_framework_refuses_has_our_form() {
    for (method, path, body, expected) in [
        (Method::PUT, PATH, None, "405 Method Not Allowed"),
        (Method::GET, "/v1/partner/nothing", None, "404 Not Found"),
        (
            Method::POST,
            "/v1/partner/browser-session",
            Some(json!("x".repeat(70_000))),
            "413 Payload Too Large",
        ),
    ] {
        let answer = call(MockSessionService::new(), &method, path, body.as_ref()).await;
        let (status, body) = answer.split_once(" {").unwrap();
        assert_eq!(status, expected);
        let code = expected.split(' ').next().unwrap();
        assert!(body.starts_with(&format!("\"statusCode\":{code},\"message\":\"")), "{body}");
    }
}

#[actix_web::test]
async fn the_embed_page_changes_nothing_and_lets_nothing_foreign_in() {
    let app = test::init_service(app(services(MockSessionService::new()))).await;
    let request = test::TestRequest::get().uri("/embed/any?token=any").to_request();
    let response = test::call_service(&app, request).await;
    assert_eq!(response.status(), 200);
    let policy = response.headers().get(header::CONTENT_SECURITY_POLICY).unwrap();
    insta::assert_snapshot!(policy.to_str().unwrap(), @"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *");
}

fn session() -> Session {
    let owner = ApiKeyId::from_uuid(Uuid::from_u128(2));
    let mut session = sample::opening(owner, PlatformId(7)).session;
    session.id = SessionId::from_uuid(Uuid::from_u128(1));
    session
}

fn face(session: Session) -> SessionFace {
    SessionFace { session, embed_url: "https://avouch.example/embed/1?token=t".into() }
}

fn services(sessions: MockSessionService) -> Services {
    let mut keys = MockKeyCheck::new();
    keys.expect_caller()
        .returning(|_| Ok(Some(sample::key(TeamId::from_uuid(Uuid::from_u128(3))))));
    let mut lookups = MockLookups::new();
    lookups.expect_countries().returning(Vec::<Country>::new);
    Services {
        keys: Arc::new(keys),
        sessions: Arc::new(sessions),
        lookups: Arc::new(lookups),
        applicants: Arc::new(Nobody),
        ready: Arc::new(Nobody),
    }
}

/// Lets nobody in.
struct Nobody;

#[async_trait]
impl ApplicantService for Nobody {
    async fn join(
        &self,
        _: SessionId,
        _: &str,
        _: Viewport,
        _: Option<&str>,
    ) -> Result<Arc<dyn Viewing>, ApplicantError> {
        Err(ApplicantError::NotFound)
    }
}

#[async_trait]
impl Readiness for Nobody {
    async fn ready(&self) -> bool {
        false
    }
}

async fn call(
    service: MockSessionService,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> String {
    let app = test::init_service(app(services(service))).await;
    let mut request = test::TestRequest::with_uri(path)
        .method(method.clone())
        .insert_header(("x-api-key", "avk_dev_key"));
    if let Some(body) = body {
        request = request.set_json(body);
    }
    shown(test::call_service(&app, request.to_request()).await).await
}

async fn shown(response: actix_web::dev::ServiceResponse<impl body::MessageBody>) -> String {
    let status = response.status();
    let bytes = body::to_bytes(response.into_body()).await.ok().unwrap();
    format!("{status} {}", String::from_utf8_lossy(&bytes))
}
