//! Requests for studios of other instances, which these answer.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use actix_web::{
    Error, HttpRequest, HttpResponse, HttpResponseBuilder, ResponseError as _,
    body::BoxBody,
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER},
    },
    middleware::Next,
    web,
};
use authoring::Studios;
use ports::driving::{
    BodyBounds, ForwardError, ForwardSender, Forwarding, OtherInstance, StudioOwner, StudioRouter,
};
use serde_json::json;

use crate::{MAX_BODY_BYTES, Refused, SignedInAuthor, StudioAccess};

/// What is taken of a request: a definition of the maximum length at 1 Mbit/s.
const BODY: BodyBounds = BodyBounds { bytes: MAX_BODY_BYTES, time: Duration::from_secs(30) };
/// The page that is shown in place of a studio.
const PAGE: &str = include_str!("../web/unavailable.html");
/// For whoever opens the page with a key that no studio has.
const UNKNOWN: &str = "There is no studio at this address. If it is open in another browser or tab, \
     continue there. Otherwise get a new link with <code>avouch workflow studio</code>, or with \
     <em>Open studio</em> in the portal.";
/// For whoever opens the page of an author's studio and is not that author.
const SIGNED_OUT: &str = "This studio is open in another browser, in which its author is signed in. \
     Continue there, or sign in to the portal here and choose <em>Open studio</em>.";
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Has another instance answer a request.
pub type Forward = fn(
    Arc<dyn StudioRouter>,
    Forwarding,
    HttpRequest,
    Payload,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, ForwardError>>>>;

/// How studios of other instances are reached.
#[derive(Clone)]
pub struct Elsewhere {
    pub router: Arc<dyn StudioRouter>,
    pub forward: Forward,
}

/// Has the instance answer that the key of a request names, if it is another one.
pub(crate) async fn answer(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let access = request.app_data::<web::Data<StudioAccess>>();
    let elsewhere =
        access.and_then(|access| access.elsewhere.clone().zip(Some(access.author.clone())));
    let instance = request.match_info().get("key").and_then(Studios::instance_of);
    let Some(((elsewhere, author), instance)) = elsewhere.zip(instance) else {
        return next.call(request).await;
    };
    let located = elsewhere.router.locate(StudioOwner::Instance(instance));
    let Some(located) = located.transpose() else { return next.call(request).await };
    let (request, payload) = request.into_parts();
    let response = match located {
        Ok(to) => pass_on(elsewhere, &author, to, &request, payload).await,
        Err(error) => refused(error, request.path()),
    };
    Ok(ServiceResponse::new(request, response))
}

/// Has another instance answer a request. The studios of instances belong to authors: whoever is none is
/// refused here, and nothing of their request is read.
async fn pass_on(
    elsewhere: Elsewhere,
    author: &SignedInAuthor,
    to: OtherInstance,
    request: &HttpRequest,
    payload: Payload,
) -> HttpResponse {
    let Some(author) = author(request.clone()).await else {
        let refused = Refused::SignedOut;
        return if is_page(request.path()) { refused.page() } else { refused.error_response() };
    };
    let Elsewhere { router, forward } = elsewhere;
    let sender = ForwardSender::Author(author.user);
    let forwarding = Forwarding { sender, to, bounds: BODY };
    let answered = forward(router, forwarding, request.clone(), payload).await;
    answered.unwrap_or_else(|error| refused(error, request.path()))
}

/// Returns the response where no instance answers: a page in place of the studio's page, JSON for its API.
fn refused(error: ForwardError, path: &str) -> HttpResponse {
    let status = match error {
        // The page goes on after other errors, and ends with the second one of these.
        ForwardError::Ended => StatusCode::GONE,
        ForwardError::Unreachable | ForwardError::Busy | ForwardError::TimedOut => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ForwardError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ForwardError::Unreadable => StatusCode::BAD_REQUEST,
        ForwardError::ResponseTooLarge => StatusCode::BAD_GATEWAY,
    };
    let mut response = HttpResponse::build(status);
    response.insert_header((CACHE_CONTROL, "no-store"));
    if let Some(seconds) = error.retry_after() {
        response.insert_header((RETRY_AFTER, seconds.to_string()));
    }
    if !is_page(path) {
        return response.json(json!({ "message": error.to_string() }));
    }
    with_page(&mut response, &sentence(error))
}

/// Returns whether the path of a request is that of the studio's page.
fn is_page(path: &str) -> bool {
    path.ends_with('/')
}

impl Refused {
    /// Returns the page that an author sees in place of a studio.
    pub(crate) fn page(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.insert_header((CACHE_CONTROL, "no-store"));
        match self {
            Self::Unknown => with_page(&mut response, UNKNOWN),
            Self::SignedOut => with_page(&mut response, SIGNED_OUT),
            Self::Foreign | Self::Studio(_) => self.error_response(),
        }
    }
}

/// Returns the page that is shown in place of a studio, with a text in HTML.
fn with_page(response: &mut HttpResponseBuilder, text: &str) -> HttpResponse {
    response
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .body(PAGE.replace("{message}", text))
}

/// Returns the text of an error with a capital letter and a full stop.
fn sentence(error: ForwardError) -> String {
    let text = error.to_string();
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use actix_web::{body, test::TestRequest};
    use ports::driving::MockStudioRouter;

    use super::*;

    #[actix_web::test]
    async fn nothing_is_forwarded_for_whoever_is_no_author() {
        let elsewhere = Elsewhere {
            router: Arc::new(MockStudioRouter::new()),
            forward: |_, _, _, _| panic!("the request was forwarded"),
        };
        let author: SignedInAuthor = Arc::new(|_| Box::pin(async { None }));
        let id = Studios::instance_of(&"0".repeat(96)).unwrap();
        let to = OtherInstance { id, address: "10.0.0.2:1".into() };
        let (request, payload) = TestRequest::post().set_payload("{}").to_http_parts();
        let response = pass_on(elsewhere, &author, to, &request, payload).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    }

    async fn text(response: HttpResponse) -> String {
        let body = body::to_bytes(response.into_body()).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn whoever_opens_a_studio_without_its_key_reads_where_to_continue() {
        for (refused, status, shown) in [
            (Refused::Unknown, StatusCode::NOT_FOUND, "<code>avouch workflow studio</code>"),
            (Refused::SignedOut, StatusCode::UNAUTHORIZED, "choose <em>Open studio</em>"),
        ] {
            let page = refused.page();
            assert_eq!(page.status(), status);
            assert_eq!(page.headers().get(CONTENT_TYPE).unwrap(), "text/html; charset=utf-8");
            let page = text(page).await;
            assert!(page.contains("open in another browser") && page.contains(shown), "{page}");
        }
    }

    #[actix_web::test]
    async fn an_author_is_told_that_the_studio_has_ended_or_to_try_again() {
        let page = "/studio/0a/";
        let ended = refused(ForwardError::Ended, page);
        assert_eq!((ended.status(), ended.headers().get(RETRY_AFTER)), (StatusCode::GONE, None));
        let shown = text(ended).await;
        assert!(shown.contains("<p>The studio has ended: open it again.</p>"), "{shown}");
        let api = refused(ForwardError::Ended, "/studio/0a/api/state");
        assert_eq!(api.headers().get(CONTENT_TYPE).unwrap(), "application/json");
        assert_eq!(
            text(api).await,
            json!({ "message": ForwardError::Ended.to_string() }).to_string()
        );

        for error in [ForwardError::Unreachable, ForwardError::Busy, ForwardError::TimedOut] {
            let away = refused(error, page);
            assert_eq!(away.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(away.headers().get(RETRY_AFTER).unwrap(), "5");
        }
        let large = refused(ForwardError::ResponseTooLarge, page);
        assert_eq!(large.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(large.headers().get(RETRY_AFTER), None);
    }
}
