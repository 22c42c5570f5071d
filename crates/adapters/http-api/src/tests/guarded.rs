//! The headers of every response, and which request headers are trusted.

use actix_web::{
    dev::Service as _,
    http::{
        Method,
        header::{self, HeaderMap},
    },
    test,
};
use ports::driving::{MockAuthenticator, MockSessionService};

use super::{
    PATH,
    mocks::{authenticator, polled, refused, services},
};
use crate::{TrustedProxies, app};

const ALONE: &str = "default-src 'none'; frame-ancestors 'none'";

fn named<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[actix_web::test]
async fn no_answer_of_the_api_is_cached_framed_or_taken_for_something_else() {
    for (method, path, key, status) in [
        (Method::GET, PATH, true, 200),
        (Method::GET, PATH, false, 401),
        (Method::PUT, PATH, true, 405),
        (Method::GET, "/v1/partner/nothing", true, 404),
        (Method::POST, "/v1/partner/browser-session", true, 415),
        (Method::GET, "/v1/openapi.json", true, 200),
        (Method::GET, "/nothing", true, 404),
        (Method::GET, "/embed/assets/old/main.js", true, 404),
        (Method::GET, "/healthz", true, 200),
        (Method::GET, "/readyz", true, 503),
    ] {
        let authenticator = if key {
            authenticator(|| Ok(Some(polled())))
        } else {
            let mut authenticator = MockAuthenticator::new();
            authenticator.expect_poll().returning(|_, _| Ok((refused(), None)));
            authenticator
        };
        let app = test::init_service(app(services(authenticator, MockSessionService::new()))).await;
        let request = test::TestRequest::with_uri(path).method(method.clone()).to_request();
        let answer = test::call_service(&app, request).await;
        assert_eq!(answer.status(), status, "{method} {path}");
        let header = |name| named(answer.headers(), name);
        assert_eq!(header("cache-control"), "no-store", "{method} {path}");
        assert_eq!(header("content-security-policy"), ALONE, "{method} {path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{method} {path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{method} {path}");
    }
}

#[actix_web::test]
async fn a_panic_is_answered_with_the_same_headers() {
    let mut authenticator = MockAuthenticator::new();
    authenticator.expect_poll().returning(|_, _| panic!("on purpose"));
    let app = test::init_service(app(services(authenticator, MockSessionService::new()))).await;
    let request = test::TestRequest::get().uri(PATH).to_request();
    let Err(error) = app.call(request).await else { panic!("it was answered") };
    let answer = error.error_response();
    assert_eq!(named(answer.headers(), "cache-control"), "no-store");
    assert_eq!(named(answer.headers(), "content-security-policy"), ALONE);
}

/// Headers about caching and embedding that a handler set are not replaced.
#[actix_web::test]
async fn pages_and_their_files_keep_their_own_headers() {
    let services = services(MockAuthenticator::new(), MockSessionService::new());
    let app = test::init_service(app(services)).await;
    let style = format!("/embed/assets/{}/style.css", embed::build());
    for (path, cache, shown_by) in [
        ("/embed.js", "public, max-age=3600", "frame-ancestors 'none'"),
        (style.as_str(), "public, max-age=31536000, immutable", "frame-ancestors 'none'"),
        ("/embed/any?token=any", "no-store", "frame-ancestors *"),
        ("/docs/", "no-cache", "script-src 'self'; style-src 'self'"),
        ("/docs/reference.html", "no-cache", "frame-ancestors 'none'"),
    ] {
        let request = test::TestRequest::get().uri(path).to_request();
        let answer = test::call_service(&app, request).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(named(answer.headers(), "cache-control"), cache, "{path}");
        let policy = named(answer.headers(), "content-security-policy");
        assert!(policy.contains(shown_by), "{path}: {policy}");
    }
}

/// Returns whether the streams open for a page of an origin.
#[actix_web::test]
async fn a_stream_opens_for_our_own_pages_alone() {
    const OURS: &str = "https://avouch.example";
    const OTHER: &str = "https://evil.example";
    const FORGED: &str = "host=evil.example;proto=https";
    let (none, proxy) = (&[][..], "10.0.0.1:1");
    for (peer, host, more, origin, status) in [
        ("192.0.2.9:1", "avouch.example", none, OURS, 101),
        ("192.0.2.9:1", "avouch.example", none, OTHER, 403),
        ("192.0.2.9:1", "avouch.example", none, "null", 403),
        ("192.0.2.9:1", "avouch.example", &[("x-forwarded-host", "evil.example")], OTHER, 403),
        ("192.0.2.9:1", "avouch.example", &[("forwarded", FORGED)], OTHER, 403),
        ("192.0.2.9:1", "avouch.example", &[("x-forwarded-host", "evil.example")], OURS, 101),
        (proxy, "10.0.0.2:8080", &[("x-forwarded-host", "avouch.example")], OURS, 101),
        (proxy, "10.0.0.2:8080", &[("forwarded", "host=avouch.example")], OURS, 101),
        (proxy, "10.0.0.2:8080", &[("x-forwarded-host", "avouch.example")], OTHER, 403),
    ] {
        for path in ["/embed/any/stream", "/watch/any/stream"] {
            let mut services = services(MockAuthenticator::new(), MockSessionService::new());
            services.trusted_proxies = TrustedProxies("10.0.0.0/8".parse().unwrap());
            let app = test::init_service(app(services)).await;
            let mut request = test::TestRequest::get()
                .uri(path)
                .peer_addr(peer.parse().unwrap())
                .insert_header((header::HOST, host))
                .insert_header((header::ORIGIN, origin))
                .insert_header((header::CONNECTION, "upgrade"))
                .insert_header((header::UPGRADE, "websocket"))
                .insert_header((header::SEC_WEBSOCKET_VERSION, "13"))
                .insert_header((header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="));
            for pair in more {
                request = request.insert_header(*pair);
            }
            let answer = test::call_service(&app, request.to_request()).await;
            assert_eq!(answer.status(), status, "{path} {peer} {more:?} {origin}");
        }
    }
}
