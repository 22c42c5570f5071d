//! The language of a page: the one that its reader has chosen, otherwise the one that their browser
//! prefers.

use std::str::FromStr;

use actix_web::{
    Error, HttpRequest, HttpResponse,
    body::BoxBody,
    cookie::time::Duration,
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, HeaderValue, VARY},
    },
    middleware::Next,
    web,
};
use ports::driving::PortalError;

use crate::{
    accept_language,
    authenticated::{cookie, with_cookie},
    error::{PageError, redirect},
    forms::PublicForm,
    methods::submitting,
    page::PortalPage,
    sign_in::portal_path,
};

/// The cookie with the language that the reader has chosen: `en` or `de`, and nothing else.
const COOKIE: &str = "__Host-avouch-language";
const COOKIE_TTL: Duration = Duration::days(365);
const MAX_TAG_CHARS: usize = 2;
/// The landing page, the only page outside of `/portal/`.
const LANDING: &str = "/";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/portal/language", submitting(choose));
}

/// A language of the portal's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageLanguage {
    English,
    German,
}

impl PageLanguage {
    /// All languages; the first one is for readers who prefer none of them.
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::German];

    /// Returns the tag of the language (BCP 47).
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }

    /// Returns the name of the language in the language itself.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::German => "Deutsch",
        }
    }

    fn of(request: &HttpRequest) -> Self {
        let chosen = cookie(request, COOKIE, MAX_TAG_CHARS);
        let chosen = chosen.and_then(|tag| tag.expose().parse().ok());
        chosen.unwrap_or_else(|| {
            let values = request.headers().get_all(ACCEPT_LANGUAGE);
            accept_language::preferred(values.filter_map(|value| value.to_str().ok()))
        })
    }
}

impl FromStr for PageLanguage {
    type Err = UnknownPageLanguage;

    fn from_str(tag: &str) -> Result<Self, UnknownPageLanguage> {
        Self::ALL.into_iter().find(|known| known.tag() == tag).ok_or(UnknownPageLanguage)
    }
}

/// The tag is of no language of the portal.
pub(crate) struct UnknownPageLanguage;

/// Renders the page of a response in the language of its reader. Handlers and errors return pages
/// without a body, since only the request tells the language.
pub(crate) async fn render(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let mut response = next.call(request).await?;
    let page = response.response_mut().extensions_mut().remove::<PortalPage>();
    let Some(page) = page else { return Ok(response) };
    let language = PageLanguage::of(response.request());
    let headers = response.headers_mut();
    headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
    headers.append(VARY, HeaderValue::from_static("Accept-Language, Cookie"));
    let return_path = return_path(response.request());
    match page.render(language, return_path.as_deref()) {
        Ok(html) => Ok(response.map_body(|_, _| BoxBody::new(html))),
        Err(error) => {
            tracing::error!(?error, "failed to render a page");
            let failed = HttpResponse::build(StatusCode::INTERNAL_SERVER_ERROR)
                .body("Something went wrong. Try again.");
            Ok(ServiceResponse::new(response.request().clone(), failed))
        }
    }
}

/// Returns where a reader comes back to after choosing another language; `None` for the response to
/// a form, whose address may have no page.
fn return_path(request: &HttpRequest) -> Option<String> {
    let address = request.uri().path_and_query().filter(|_| request.method().is_safe())?;
    Some(page_path(address.as_str()))
}

/// Returns the path if it is the landing page or a path of the portal, otherwise the start page.
fn page_path(path: &str) -> String {
    if path == LANDING { LANDING.to_owned() } else { portal_path(path) }
}

/// Remembers a language. The form needs no CSRF token, since readers who are not signed in use it
/// too; only pages of the portal can submit it.
async fn choose(submitted: PublicForm) -> Result<HttpResponse, PageError> {
    let fields = submitted.0;
    let unknown = |_| PortalError::Invalid("select a language of the list".to_owned());
    let language = fields.text("language").parse::<PageLanguage>().map_err(unknown)?;
    let response = redirect(&page_path(fields.text("next")));
    Ok(with_cookie(response, COOKIE, language.tag(), COOKIE_TTL))
}

#[cfg(test)]
mod tests {
    use actix_web::{
        App,
        body::to_bytes,
        cookie::Cookie,
        test::{TestRequest, call_service, init_service},
        web::resource,
    };

    use super::*;
    use crate::{error::not_found, methods::reading};

    #[test]
    fn only_pages_of_the_portal_are_returned_to() {
        assert_eq!(page_path("/"), "/");
        assert_eq!(page_path("/portal/keys?done=key-revoked"), "/portal/keys?done=key-revoked");
        for odd in ["", "//evil.example", "/\\evil.example", "https://evil.example/", "/docs/"] {
            assert_eq!(page_path(odd), "/portal/overview", "{odd}");
        }
    }

    #[actix_web::test]
    async fn a_page_has_the_chosen_or_else_the_preferred_language() {
        let app =
            init_service(App::new().service(resource("/portal/x").route(reading(not_found)))).await;
        for (accepted, chosen, expected) in [
            (None, None, "en"),
            (Some("de-AT, en;q=0.5"), None, "de"),
            (Some("de"), Some("en"), "en"),
            (Some("en"), Some("de"), "de"),
            (Some("de"), Some("fr"), "de"),
            (Some("de"), Some("english"), "de"),
        ] {
            let mut request = TestRequest::get().uri("/portal/x?a=1");
            if let Some(accepted) = accepted {
                request = request.insert_header((ACCEPT_LANGUAGE, accepted));
            }
            if let Some(chosen) = chosen {
                request = request.cookie(Cookie::new(COOKIE, chosen));
            }
            let response = call_service(&app, request.to_request()).await;
            let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            assert_eq!(header(CONTENT_LANGUAGE), Some(expected), "{accepted:?}, {chosen:?}");
            assert_eq!(header(VARY), Some("Accept-Language, Cookie"));
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            let body = to_bytes(response.into_body()).await.unwrap_or_default();
            let html = String::from_utf8_lossy(&body);
            assert!(html.contains(&format!("<html lang=\"{expected}\">")), "{html}");
            let title = if expected == "de" { "Seite nicht gefunden" } else { "Page not found" };
            assert!(html.contains(&format!("<h1>{title}</h1>")), "{html}");
            assert!(html.contains("name=\"next\" value=\"&#x2f;portal&#x2f;x?a=1\""), "{html}");
        }
    }
}
