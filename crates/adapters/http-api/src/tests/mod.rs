//! The wire format of the partner API, pinned by snapshots; the use cases are mocked.

mod attestations;
mod conformance;
mod guarded;
mod links;
mod mocks;
mod traces;

use std::sync::Arc;

use actix_web::{
    body,
    dev::Service as _,
    http::{Method, header},
    test,
};
use domain::session::Event;
use ports::{
    StoreError,
    driving::{
        AccessDenied, AuthOutcome, CreatedSession, MockAuthenticator, MockLookupService,
        MockSessionService, SessionError,
    },
    session_store::SessionSummary,
};
use serde_json::json;
use testkit::sample;
use uuid::Uuid;

use self::mocks::{
    admission, authenticator, call, call_with, face, polled, refused, services, session, shown,
};
use super::{TrustedProxies, app};

const PATH: &str = "/v1/partner/browser-session/00000000-0000-0000-0000-000000000001";

#[actix_web::test]
async fn a_created_session_is_201_with_its_link() {
    let mut service = MockSessionService::new();
    service.expect_create().returning(|caller, request, _| {
        let mut session = session();
        session.owner = caller.id;
        session.terms.platform = request.platform;
        Ok(CreatedSession { view: face(session), replayed: false })
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
    let authenticator = authenticator(|| Ok(Some(polled())));
    let service = MockSessionService::new();
    insta::assert_snapshot!(call_with(authenticator, service, &Method::GET, PATH, None).await);
}

#[actix_web::test]
async fn a_list_counts_what_fits() {
    let mut service = MockSessionService::new();
    service.expect_list().returning(|_, query| {
        assert_eq!((query.page.limit, query.page.offset), (2, 4));
        let session = session();
        let summary = SessionSummary {
            id: session.id,
            status: session.status(),
            platform: session.terms.platform,
            created_at: session.created_at,
            closed_at: None,
        };
        Ok((vec![summary], 5))
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
        .returning(|_, _| Ok(sample::transition(&session(), Event::TerminatedByPartner).session));
    insta::assert_snapshot!(call(service, &Method::DELETE, PATH, None).await);
}

#[actix_web::test]
async fn an_unknown_session_is_404_whatever_is_asked_of_it() {
    for (method, path) in [
        (Method::GET, PATH.to_owned()),
        (Method::DELETE, PATH.to_owned()),
        (Method::GET, format!("{PATH}/recording")),
        (Method::GET, format!("{PATH}/attestation")),
        (Method::GET, "/v1/partner/browser-session/not-a-uuid".to_owned()),
    ] {
        let mut service = MockSessionService::new();
        service.expect_terminate().returning(|_, _| Err(SessionError::NotFound));
        service.expect_recording().returning(|_, _| Err(SessionError::NotFound));
        service.expect_attestation().returning(|_, _| Err(SessionError::NotFound));
        let answer = call(service, &method, &path, None).await;
        let expected = failure(404, "Not Found", "Session not found", "SESSION_NOT_FOUND");
        assert_eq!(answer, expected, "{method} {path}");
    }
}

#[actix_web::test]
async fn no_key_is_401() {
    let mut authenticator = MockAuthenticator::new();
    authenticator.expect_poll().returning(|knock, _| {
        assert!(knock.key.is_none());
        Ok((refused(), None))
    });
    let app = test::init_service(app(services(authenticator, MockSessionService::new()))).await;
    for headers in [None, Some(("x-api-key", "")), Some(("authorization", "Basic a2V5"))] {
        let mut request = test::TestRequest::get().uri(PATH);
        if let Some(header) = headers {
            request = request.insert_header(header);
        }
        let answer = shown(test::call_service(&app, request.to_request()).await).await;
        assert_eq!(answer, failure(401, "Unauthorized", "Unauthorized", "UNAUTHORIZED"));
    }
}

#[actix_web::test]
async fn a_bearer_token_is_a_key_in_any_case_of_the_scheme() {
    let authenticator = authenticator(|| Ok(Some(polled())));
    let app = test::init_service(app(services(authenticator, MockSessionService::new()))).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let request = test::TestRequest::get()
            .uri(PATH)
            .insert_header((header::AUTHORIZATION, format!("{scheme} avk_dev_key")));
        assert_eq!(test::call_service(&app, request.to_request()).await.status(), 200);
    }
}

#[actix_web::test]
async fn every_answer_says_where_the_limit_stands_and_has_an_id() {
    for path in [PATH, "/v1/partner/browser-platforms", "/v1/partner/nothing", "/v1/nothing"] {
        for method in [Method::GET, Method::PATCH] {
            let mut lookups = services(authenticator(|| Ok(None)), MockSessionService::new());
            let mut platforms = MockLookupService::new();
            platforms.expect_platforms().returning(|_| Ok(vec![]));
            lookups.lookups = Arc::new(platforms);
            let app = test::init_service(app(lookups)).await;
            let request = test::TestRequest::with_uri(path)
                .method(method.clone())
                .insert_header(("x-request-id", "order-7"));
            let answer = test::call_service(&app, request.to_request()).await;
            let header = |name: &str| answer.headers().get(name).unwrap().to_str().unwrap();
            assert_eq!(header("x-ratelimit-limit"), "120", "{method} {path}");
            assert_eq!(header("x-ratelimit-remaining"), "99", "{method} {path}");
            assert_eq!(header("x-ratelimit-reset"), "1767268801", "{method} {path}");
            assert_eq!(header("x-request-id"), "order-7", "{method} {path}");
        }
    }
}

#[actix_web::test]
async fn who_is_over_the_limit_is_told_when_to_come_again() {
    let mut authenticator = MockAuthenticator::new();
    authenticator.expect_authenticate().returning(|_| {
        Ok(AuthOutcome { result: Err(AccessDenied::TooMany { retry_after: 17 }), ..admission() })
    });
    let app = test::init_service(app(services(authenticator, MockSessionService::new()))).await;
    let request = test::TestRequest::post().uri("/v1/partner/browser-session").to_request();
    let answer = test::call_service(&app, request).await;
    assert_eq!(answer.headers().get(header::RETRY_AFTER).unwrap(), "17");
    let expected = failure(429, "Too Many Requests", "Too Many Requests", "RATE_LIMITED");
    assert_eq!(shown(answer).await, expected);
}

#[actix_web::test]
async fn only_a_trusted_proxy_is_believed_about_an_address() {
    for (peer, forwarded, expected) in [
        ("192.0.2.9", "203.0.113.5", "192.0.2.9"),
        ("10.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "198.51.100.7, 203.0.113.5, 10.0.0.2", "203.0.113.5"),
        ("10.0.0.1", "198.51.100.7, nonsense, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "", "10.0.0.1"),
    ] {
        let mut authenticator = MockAuthenticator::new();
        authenticator.expect_poll().returning(move |knock, _| {
            assert_eq!(knock.address.to_string(), expected, "{peer} {forwarded}");
            Ok((refused(), None))
        });
        let mut services = services(authenticator, MockSessionService::new());
        services.trusted_proxies = TrustedProxies("10.0.0.0/8".parse().unwrap());
        let app = test::init_service(app(services)).await;
        let request = test::TestRequest::get()
            .uri(PATH)
            .peer_addr(format!("{peer}:1").parse().unwrap())
            .insert_header(("x-forwarded-for", forwarded));
        assert_eq!(test::call_service(&app, request.to_request()).await.status(), 401);
    }
}

#[actix_web::test]
async fn a_handler_that_panics_is_a_500() {
    let mut authenticator = MockAuthenticator::new();
    authenticator.expect_poll().returning(|_, _| panic!("on purpose"));
    let app = test::init_service(app(services(authenticator, MockSessionService::new()))).await;
    let request = test::TestRequest::get().uri(PATH).to_request();
    let Err(error) = app.call(request).await else { panic!("it was answered") };
    let error = error.error_response();
    assert!(error.headers().contains_key("x-request-id"));
    let body = body::to_bytes(error.into_body()).await.ok().unwrap();
    let body = format!("500 Internal Server Error {}", String::from_utf8_lossy(&body));
    assert_eq!(body, internal_error());
}

#[actix_web::test]
async fn a_cause_stays_inside() {
    let authenticator = authenticator(|| Err(StoreError::new("poll a session", "secret detail")));
    let service = MockSessionService::new();
    let answer = call_with(authenticator, service, &Method::GET, PATH, None).await;
    assert_eq!(answer, internal_error());
}

#[actix_web::test]
async fn what_the_framework_refuses_has_our_form() {
    for (method, path, body, expected) in [
        (
            Method::PUT,
            PATH,
            None,
            failure(405, "Method Not Allowed", "Method Not Allowed", "METHOD_NOT_ALLOWED"),
        ),
        (
            Method::GET,
            "/v1/partner/nothing",
            None,
            failure(404, "Not Found", "Not Found", "NOT_FOUND"),
        ),
        (
            Method::POST,
            "/v1/partner/browser-session",
            Some(json!("x".repeat(70_000))),
            failure(
                413,
                "Payload Too Large",
                "the body must be at most 65536 bytes long",
                "PAYLOAD_TOO_LARGE",
            ),
        ),
    ] {
        let answer = call(MockSessionService::new(), &method, path, body.as_ref()).await;
        assert_eq!(answer, expected);
    }
}

#[actix_web::test]
async fn the_interface_description_is_as_reviewed() {
    insta::assert_snapshot!(super::openapi::document().to_pretty_json().unwrap());
}

#[actix_web::test]
async fn every_described_operation_is_served_and_no_other() {
    let mut refusing = MockAuthenticator::new();
    refusing.expect_poll().returning(|_, _| Ok((refused(), None)));
    refusing.expect_authenticate().returning(|_| Ok(refused()));
    let refusing = test::init_service(app(services(refusing, MockSessionService::new()))).await;
    let mut admitting = MockAuthenticator::new();
    admitting.expect_poll().returning(|_, _| Ok((refused(), None)));
    admitting.expect_authenticate().returning(|_| Ok(admission()));
    let admitting = test::init_service(app(services(admitting, MockSessionService::new()))).await;

    let document = serde_json::to_value(super::openapi::document()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = format!("/v1{}", path.replace("{id}", &Uuid::nil().to_string()));
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let is_described = item.get(method.to_ascii_lowercase()).is_some();
            let (app, expected) = if is_described { (&refusing, 401) } else { (&admitting, 405) };
            let request = test::TestRequest::with_uri(&path).method(method.parse().unwrap());
            let request = request.insert_header(("x-api-key", "avk_dev_key"));
            let answer = test::call_service(app, request.to_request()).await;
            assert_eq!(answer.status(), expected, "{method} {path}");
        }
    }
}

#[actix_web::test]
async fn the_embed_page_changes_nothing_and_lets_nothing_foreign_in() {
    let services = services(MockAuthenticator::new(), MockSessionService::new());
    let app = test::init_service(app(services)).await;
    let request = test::TestRequest::get().uri("/embed/any?token=any").to_request();
    let response = test::call_service(&app, request).await;
    assert_eq!(response.status(), 200);
    let policy = response.headers().get(header::CONTENT_SECURITY_POLICY).unwrap();
    insta::assert_snapshot!(policy.to_str().unwrap(), @"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *");
}

/// Returns a failed response as [`shown`] does.
fn failure(status: u16, reason: &str, message: &str, code: &str) -> String {
    let anchor = code.to_ascii_lowercase();
    format!(
        "{status} {reason} {{\"statusCode\":{status},\"message\":\"{message}\",\"code\":\"{code}\",\
         \"docUrl\":\"https://avouch.test/docs/errors.html#{anchor}\"}}"
    )
}

fn internal_error() -> String {
    failure(500, "Internal Server Error", "Internal Server Error", "INTERNAL_ERROR")
}
