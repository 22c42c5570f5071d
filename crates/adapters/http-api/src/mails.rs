//! The page on which recipients unsubscribe from mails. A GET changes nothing, since mail scanners
//! open links too; the one-click request of a mail program is a POST (RFC 8058).

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    web,
};
use domain::{branding::BrandName, language::Language};
use embed::{UnsubscribePage, unsubscribe_page};
use ports::driving::{MailPreference, MailPreferenceService};
use serde::Deserialize;

use super::{HTML, error::ApiError};

const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/unsubscribe/{token}/undo", web::post().to(undo))
        .route("/unsubscribe/{token}", web::get().to(page))
        .route("/unsubscribe/{token}", web::head().to(page))
        .route("/unsubscribe/{token}", web::post().to(unsubscribe));
}

#[derive(Deserialize)]
struct PreferenceQuery {
    /// A BCP 47 language tag.
    lang: Option<String>,
}

async fn page(
    mails: web::Data<dyn MailPreferenceService>,
    token: web::Path<String>,
    query: web::Query<PreferenceQuery>,
) -> Result<HttpResponse, ApiError> {
    let preference = mails.mails(&token).await?;
    let state = if preference.as_ref().is_some_and(|preference| preference.wanted) {
        UnsubscribePage::Ask
    } else {
        UnsubscribePage::Stopped
    };
    Ok(answer(&token, &query, preference.as_ref(), state))
}

/// Unsubscribes, whatever the body is: mail programs and the page's own button send different ones.
async fn unsubscribe(
    mails: web::Data<dyn MailPreferenceService>,
    token: web::Path<String>,
    query: web::Query<PreferenceQuery>,
) -> Result<HttpResponse, ApiError> {
    let preference = mails.choose_mails(&token, false).await?;
    Ok(answer(&token, &query, preference.as_ref(), UnsubscribePage::Stopped))
}

async fn undo(
    mails: web::Data<dyn MailPreferenceService>,
    token: web::Path<String>,
    query: web::Query<PreferenceQuery>,
) -> Result<HttpResponse, ApiError> {
    let preference = mails.choose_mails(&token, true).await?;
    Ok(answer(&token, &query, preference.as_ref(), UnsubscribePage::Resumed))
}

fn answer(
    token: &str,
    query: &PreferenceQuery,
    preference: Option<&MailPreference>,
    state: UnsubscribePage,
) -> HttpResponse {
    let language = Language::of(query.lang.as_deref());
    let sender =
        preference.and_then(|preference| preference.sender.as_ref()).map(BrandName::as_str);
    let (status, state) = match preference {
        Some(_) => (StatusCode::OK, state),
        None => (StatusCode::NOT_FOUND, UnsubscribePage::Unknown),
    };
    let page = unsubscribe_page(language.tag(), language.direction(), sender, state, token);
    HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, HTML))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page)
}
