//! The spans of partners' requests.

use std::sync::{Arc, Mutex};

use actix_web::{dev::Service as _, http::Method, test};
use chrono::{DateTime, Utc};
use domain::id::SessionId;
use ports::{
    clock::Clock,
    driving::{CreatedSession, MockAuthenticator, MockSessionService},
    spans::{OwnTrace, Span, SpanAttribute, SpanRecorder, SpanSubject, SpanTrace},
};
use serde_json::json;
use testkit::sample::noon;

use super::{
    PATH,
    mocks::{authenticator, face, polled, refused, services, session},
};
use crate::{RequestSpans, app};

const CREATE: &str = "/v1/partner/browser-session";
const OWN: OwnTrace = OwnTrace([7; 16]);
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[derive(Default)]
struct Kept(Mutex<Vec<Span>>);

impl SpanRecorder for Kept {
    fn is_sampled(&self, _: SessionId) -> bool {
        true
    }

    fn new_trace(&self) -> Option<OwnTrace> {
        Some(OWN)
    }

    fn record(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> DateTime<Utc> {
        noon()
    }
}

/// Returns the spans of one request.
async fn spans(
    authenticator: MockAuthenticator,
    service: MockSessionService,
    method: Method,
    path: &str,
) -> Vec<Span> {
    let kept = Arc::new(Kept::default());
    let spans = RequestSpans { recorder: kept.clone(), clock: Arc::new(Noon) };
    let mut services = services(authenticator, service);
    services.spans = Some(spans);
    let app = test::init_service(app(services)).await;
    let mut request = test::TestRequest::with_uri(path)
        .insert_header(("x-api-key", "avk_dev_key"))
        .insert_header(("traceparent", PARENT));
    if method == Method::POST {
        request = request.set_json(json!({ "platformId": 7, "location": { "country": "US" } }));
    }
    let _ = app.call(request.method(method).to_request()).await;
    kept.0.lock().unwrap().clone()
}

fn subject(method: &'static str, route: &str) -> SpanSubject {
    SpanSubject::Request { method, route: Some(route.to_owned()) }
}

#[actix_web::test]
async fn the_request_that_creates_a_session_belongs_to_its_trace() {
    let mut service = MockSessionService::new();
    let created = || CreatedSession { view: face(session()), replayed: false };
    service.expect_create().returning(move |_, _, _| Ok(created()));
    let spans = spans(authenticator(|| Ok(None)), service, Method::POST, CREATE).await;
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(span.trace, SpanTrace::Session(session().id));
    assert_eq!(span.subject, subject("POST", CREATE));
    assert_eq!(span.attributes, [SpanAttribute::ResponseStatus(201)]);
    assert_eq!(span.cause.unwrap().trace[0], 0x4b, "it is linked to what the partner did");
}

#[actix_web::test]
async fn another_request_names_its_session_only_to_who_may_see_it() {
    let route = "/v1/partner/browser-session/{id}";
    let found = authenticator(|| Ok(Some(polled())));
    let seen = spans(found, MockSessionService::new(), Method::GET, PATH).await;
    let [span] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((span.trace, &span.subject), (SpanTrace::Own(OWN), &subject("GET", route)));
    let named = SpanAttribute::Session(session().id);
    assert_eq!(span.attributes, [SpanAttribute::ResponseStatus(200), named]);

    let mut stranger = MockAuthenticator::new();
    stranger.expect_poll().returning(|_, _| Ok((refused(), None)));
    let seen = spans(stranger, MockSessionService::new(), Method::GET, PATH).await;
    assert_eq!(seen, [], "anybody could fill the queue");
}

#[actix_web::test]
async fn a_path_that_is_none_of_the_interface_is_not_told() {
    let nothing = "/v1/partner/secret-path";
    let seen = spans(authenticator(|| Ok(None)), MockSessionService::new(), Method::GET, nothing);
    assert_eq!(seen.await[0].subject, SpanSubject::Request { method: "GET", route: None });
    for other in ["/healthz", "/embed/x", "/portal", "/docs"] {
        let authenticator = authenticator(|| Ok(None));
        let seen = spans(authenticator, MockSessionService::new(), Method::GET, other).await;
        assert_eq!(seen, [], "{other}");
    }
}
