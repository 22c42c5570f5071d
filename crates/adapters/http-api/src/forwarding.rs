//! Has another instance answer a request for a page, and passes its response on.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{self, BodySize, MessageBody},
    dev::Payload,
    http::{Method, StatusCode, header::HOST, uri::PathAndQuery},
    web::Bytes,
};
use futures_util::StreamExt as _;
use ports::{
    driving::{ForwardError, ForwardPermit, Forwarding, StudioRouter},
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

/// The maximum length of a piece of a response. The connection copies each piece; as a whole, a response would
/// be in memory twice for a moment.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// Has another instance answer a request, whose body is read within its bounds once there is a place for it.
/// The response has this place until it has been sent. The cookies and the body of the request are passed on
/// as they are, and are not logged.
#[must_use]
pub fn forward(
    router: Arc<dyn StudioRouter>,
    forwarding: Forwarding,
    request: HttpRequest,
    payload: Payload,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, ForwardError>>>> {
    Box::pin(async move {
        let Some(method) = method(request.method()) else {
            return Ok(HttpResponse::MethodNotAllowed().finish());
        };
        let Forwarding { sender, to, bounds } = forwarding;
        let permit = router.permit(sender)?;
        let body = tokio::time::timeout(bounds.time, read(payload, bounds.bytes)).await;
        let body = body.unwrap_or(Err(ForwardError::Unreadable))?;
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        let forwarded = ForwardedRequest { method, path, headers: headers(&request), body };
        let answered = router.forward(&permit, &to, forwarded).await;
        answered.map(|answered| response(method, answered, permit))
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

fn response(
    method: ForwardedMethod,
    answered: ForwardedResponse,
    permit: ForwardPermit,
) -> HttpResponse {
    let ForwardedResponse { status, headers, body: content } = answered;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = HttpResponse::build(status);
    for header in headers {
        response.append_header(header);
    }
    match method {
        // Without a length: the page has one, but it was not sent (RFC 9110, section 9.3.2).
        ForwardedMethod::Head => response.body(body::None::new()),
        ForwardedMethod::Get | ForwardedMethod::Post => {
            response.body(ForwardedBody { unsent: content.into(), _permit: permit })
        }
    }
}

/// The body of a response, which has the place of its request until the connection has taken all of it, or
/// has ended.
struct ForwardedBody {
    unsent: Bytes,
    _permit: ForwardPermit,
}

impl MessageBody for ForwardedBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(u64::try_from(self.unsent.len()).unwrap_or(u64::MAX))
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let unsent = &mut self.get_mut().unsent;
        let length = unsent.len().min(MAX_PIECE_BYTES);
        Poll::Ready((length > 0).then(|| Ok(unsent.split_to(length))))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::{
            Mutex,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use actix_web::{error::PayloadError, test::TestRequest};
    use async_trait::async_trait;
    use domain::id::{InstanceId, UserId};
    use futures_util::stream;
    use ports::driving::{BodyBounds, ForwardSender, OtherInstance, StudioOwner};

    use super::*;

    const BOUNDS: BodyBounds = BodyBounds { bytes: 1000, time: Duration::from_secs(60) };
    const SENDER: ForwardSender = ForwardSender::Author(UserId::from_u128(1));

    /// Answers each request with a redirect, and remembers the last one.
    #[derive(Default)]
    struct Redirects {
        last: Mutex<Option<ForwardedRequest>>,
        is_full: AtomicBool,
        /// Each place that is taken has a reference to it.
        places: Arc<()>,
    }

    impl Redirects {
        fn taken(&self) -> usize {
            Arc::strong_count(&self.places) - 1
        }
    }

    #[async_trait]
    impl StudioRouter for Redirects {
        fn locate(&self, _: StudioOwner) -> Result<Option<OtherInstance>, ForwardError> {
            Ok(Some(other()))
        }

        fn permit(&self, sender: ForwardSender) -> Result<ForwardPermit, ForwardError> {
            assert_eq!(sender, SENDER);
            if self.is_full.load(Ordering::Relaxed) {
                return Err(ForwardError::Busy);
            }
            Ok(ForwardPermit::new(self.places.clone()))
        }

        async fn forward(
            &self,
            _: &ForwardPermit,
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

    fn within(bounds: BodyBounds) -> Forwarding {
        Forwarding { sender: SENDER, to: other(), bounds }
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
        forward(router.clone(), within(BOUNDS), request, payload).await
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
        let refused = forward(router.clone(), within(bounds), request, endless()).await;
        assert_eq!(refused.err(), Some(ForwardError::Unreadable));
        assert!(router.last.lock().unwrap().is_none(), "nothing was sent");
    }

    #[actix_web::test]
    async fn nothing_is_read_of_a_request_without_a_place() {
        let router = Arc::<Redirects>::default();
        router.is_full.store(true, Ordering::Relaxed);
        let request = TestRequest::post().to_http_request();
        let refused = forward(router.clone(), within(BOUNDS), request, endless()).await;
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
    async fn a_response_has_its_place_until_it_is_read_or_dropped() {
        let router = Arc::<Redirects>::default();
        let mut body = forwarded(&router, TestRequest::get()).await.unwrap().into_body();
        let read = poll_fn(|context| Pin::new(&mut body).poll_next(context)).await;
        assert_eq!(read.unwrap().unwrap(), "moved");
        assert_eq!(router.taken(), 1, "its end has not been read");
        assert_eq!(body::to_bytes(body).await.unwrap(), "");
        assert_eq!(router.taken(), 0, "it has been read");

        let unread = forwarded(&router, TestRequest::post()).await.unwrap();
        assert_eq!(router.taken(), 1);
        drop(unread);
        assert_eq!(router.taken(), 0);

        let request = TestRequest::default().method(Method::HEAD);
        let empty = forwarded(&router, request).await.unwrap();
        assert_eq!((empty.body().size(), router.taken()), (BodySize::None, 0));
    }

    #[actix_web::test]
    async fn a_long_response_is_passed_on_completely() {
        let content: Vec<u8> = (0..=250).cycle().take(2 * MAX_PIECE_BYTES + 1).collect();
        let answered = ForwardedResponse { status: 200, headers: vec![], body: content.clone() };
        let response = response(ForwardedMethod::Get, answered, ForwardPermit::new(()));
        assert_eq!(body::to_bytes(response.into_body()).await.unwrap(), content);
    }

    #[actix_web::test]
    async fn only_methods_of_pages_are_passed_on() {
        let router = Arc::<Redirects>::default();
        let answered = forwarded(&router, TestRequest::delete()).await.unwrap();
        assert_eq!(answered.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(router.last.lock().unwrap().is_none());
    }
}
