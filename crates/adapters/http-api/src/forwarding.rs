//! Has another instance answer a request for a page, and passes its response on.

use std::{future::Future, pin::Pin, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse, body,
    dev::Payload,
    http::{Method, StatusCode, header::HOST, uri::PathAndQuery},
};
use futures_util::StreamExt as _;
use ports::{
    driving::{BodyBounds, ForwardError, OtherInstance, StudioRouter},
    instances::{ForwardedMethod, ForwardedRequest, ForwardedResponse},
};

use super::caller::{address, host};

/// The headers that the pages read: who is signed in, what is sent, which page sent it, and the language of
/// its reader.
const HEADERS: [&str; 8] = [
    "accept",
    "accept-language",
    "content-encoding",
    "content-type",
    "cookie",
    "origin",
    "sec-fetch-site",
    "user-agent",
];

/// Has another instance answer a request, whose body is read within `bounds` once there is a place for it.
/// Its cookies and its body are passed on as they are, and are not logged.
#[must_use]
pub fn forward(
    router: Arc<dyn StudioRouter>,
    to: OtherInstance,
    request: HttpRequest,
    payload: Payload,
    bounds: BodyBounds,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, ForwardError>>>> {
    Box::pin(async move {
        let Some(method) = method(request.method()) else {
            return Ok(HttpResponse::MethodNotAllowed().finish());
        };
        let permit = router.permit()?;
        let body = tokio::time::timeout(bounds.time, read(payload, bounds.bytes)).await;
        let body = body.unwrap_or(Err(ForwardError::Unreadable))?;
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        let forwarded = ForwardedRequest { method, path, headers: headers(&request), body };
        let answered = router.forward(permit, &to, forwarded).await;
        answered.map(|answered| response(method, answered))
    })
}

fn method(method: &Method) -> Option<ForwardedMethod> {
    let known = [ForwardedMethod::Get, ForwardedMethod::Head, ForwardedMethod::Post];
    known.into_iter().find(|known| known.as_str() == method.as_str())
}

/// Reads a body of at most this length.
async fn read(mut payload: Payload, max_bytes: usize) -> Result<Vec<u8>, ForwardError> {
    let mut body = vec![];
    while let Some(bytes) = payload.next().await {
        let bytes = bytes.map_err(|_| ForwardError::Unreadable)?;
        if bytes.len() > max_bytes.saturating_sub(body.len()) {
            return Err(ForwardError::TooLarge);
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// Returns the headers for the other instance. A browser names the site of a form by `Origin`, which that
/// instance compares with `Host`.
fn headers(request: &HttpRequest) -> Vec<(&'static str, String)> {
    let sent = request.headers();
    let named = sent.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let mut headers = vec![
        ("host", named.unwrap_or_else(|| host(request))),
        ("x-forwarded-for", address(request).to_string()),
    ];
    for name in HEADERS {
        // Cookies of other pages of the host may have other characters than ASCII, and must not take the
        // sign-in with them.
        let values = sent.get_all(name).filter_map(|value| str::from_utf8(value.as_bytes()).ok());
        headers.extend(values.map(|value| (name, value.to_owned())));
    }
    headers
}

fn response(method: ForwardedMethod, answered: ForwardedResponse) -> HttpResponse {
    let ForwardedResponse { status, headers, body: content } = answered;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = HttpResponse::build(status);
    for header in headers {
        response.append_header(header);
    }
    match method {
        // Without a length: the page has one, but it was not sent (RFC 9110, section 9.3.2).
        ForwardedMethod::Head => response.body(body::None::new()),
        ForwardedMethod::Get | ForwardedMethod::Post => response.body(content),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use actix_web::{
        body::{BodySize, MessageBody as _},
        error::PayloadError,
        test::TestRequest,
        web::Bytes,
    };
    use async_trait::async_trait;
    use domain::id::InstanceId;
    use futures_util::stream;
    use ports::driving::{ForwardPermit, StudioOwner};

    use super::*;

    const BOUNDS: BodyBounds = BodyBounds { bytes: 1000, time: Duration::from_secs(60) };

    /// Answers each request with a redirect, and remembers the last one.
    #[derive(Default)]
    struct Redirects {
        last: Mutex<Option<ForwardedRequest>>,
        is_full: AtomicBool,
    }

    #[async_trait]
    impl StudioRouter for Redirects {
        fn locate(&self, _: StudioOwner) -> Result<Option<OtherInstance>, ForwardError> {
            Ok(Some(other()))
        }

        fn permit(&self) -> Result<ForwardPermit, ForwardError> {
            let is_full = self.is_full.load(Ordering::Relaxed);
            if is_full { Err(ForwardError::Busy) } else { Ok(ForwardPermit::new(())) }
        }

        async fn forward(
            &self,
            _: ForwardPermit,
            to: &OtherInstance,
            request: ForwardedRequest,
        ) -> Result<ForwardedResponse, ForwardError> {
            assert_eq!(*to, other());
            *self.last.lock().unwrap() = Some(request);
            let cookies = ["a=1", "b=2"].map(|value| ("set-cookie".to_owned(), value.to_owned()));
            Ok(ForwardedResponse { status: 303, headers: cookies.into(), body: b"moved".to_vec() })
        }
    }

    fn other() -> OtherInstance {
        OtherInstance { id: InstanceId::from_u128(2), address: "10.0.0.2:1".into() }
    }

    /// A body that does not end.
    fn endless() -> Payload {
        Payload::Stream { payload: Box::pin(stream::pending::<Result<Bytes, PayloadError>>()) }
    }

    async fn forwarded(
        router: &Arc<Redirects>,
        request: TestRequest,
    ) -> Result<HttpResponse, ForwardError> {
        let (request, payload) = request.to_http_parts();
        forward(router.clone(), other(), request, payload, BOUNDS).await
    }

    #[actix_web::test]
    async fn what_a_page_needs_is_passed_on_in_both_directions() {
        let router = Arc::<Redirects>::default();
        let request = TestRequest::post()
            .uri("/portal/drafts/1/open?a=%20b")
            .insert_header(("host", "avouch.example"))
            .insert_header(("cookie", "x=é; c=1"))
            .insert_header(("origin", "https://avouch.example"))
            .insert_header(("sec-fetch-site", "same-origin"))
            .insert_header(("x-forwarded-for", "192.0.2.9"))
            .insert_header(("authorization", "Bearer x"))
            .insert_header(("connection", "upgrade"))
            .peer_addr(([192, 0, 2, 1], 1).into())
            .set_payload("form");
        let response = forwarded(&router, request).await.unwrap();
        let cookies = response.headers().get_all("set-cookie").map(|value| value.to_str().unwrap());
        assert_eq!(cookies.collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(body::to_bytes(response.into_body()).await.unwrap(), "moved");

        let sent = router.last.lock().unwrap().take().unwrap();
        assert_eq!((sent.method.as_str(), sent.body.as_slice()), ("POST", b"form".as_slice()));
        assert_eq!(sent.path, "/portal/drafts/1/open?a=%20b");
        let headers: Vec<_> =
            sent.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let expected = [
            ("host", "avouch.example"),
            // No proxy is trusted here.
            ("x-forwarded-for", "192.0.2.1"),
            ("cookie", "x=é; c=1"),
            ("origin", "https://avouch.example"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(headers, expected);
    }

    #[actix_web::test]
    async fn a_body_is_read_within_its_bounds() {
        let router = Arc::<Redirects>::default();
        let of_length = |length| TestRequest::post().set_payload(vec![b'x'; length]);
        assert!(forwarded(&router, of_length(BOUNDS.bytes)).await.is_ok());
        let sent = router.last.lock().unwrap().take().unwrap();
        assert_eq!(sent.body.len(), BOUNDS.bytes);
        let refused = forwarded(&router, of_length(BOUNDS.bytes + 1)).await;
        assert_eq!(refused.err(), Some(ForwardError::TooLarge));

        let bounds = BodyBounds { time: Duration::from_millis(1), ..BOUNDS };
        let request = TestRequest::post().to_http_request();
        let refused = forward(router.clone(), other(), request, endless(), bounds).await;
        assert_eq!(refused.err(), Some(ForwardError::Unreadable));
        assert!(router.last.lock().unwrap().is_none(), "nothing was sent");
    }

    #[actix_web::test]
    async fn nothing_is_read_of_a_request_without_a_place() {
        let router = Arc::<Redirects>::default();
        router.is_full.store(true, Ordering::Relaxed);
        let request = TestRequest::post().to_http_request();
        let refused = forward(router.clone(), other(), request, endless(), BOUNDS).await;
        assert_eq!(refused.err(), Some(ForwardError::Busy));
        assert!(router.last.lock().unwrap().is_none(), "nothing was sent");
    }

    #[actix_web::test]
    async fn the_length_of_a_page_that_is_not_sent_is_not_told() {
        let router = Arc::<Redirects>::default();
        for (method, size) in [
            (Method::GET, BodySize::Sized(5)),
            (Method::POST, BodySize::Sized(5)),
            (Method::HEAD, BodySize::None),
        ] {
            let request = TestRequest::default().method(method);
            let response = forwarded(&router, request).await.unwrap();
            assert_eq!(response.body().size(), size);
        }
    }

    #[actix_web::test]
    async fn only_methods_of_pages_are_passed_on() {
        let router = Arc::<Redirects>::default();
        let answered = forwarded(&router, TestRequest::delete()).await.unwrap();
        assert_eq!(answered.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(router.last.lock().unwrap().is_none());
    }
}
