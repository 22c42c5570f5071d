//! Where receivers of mails say that they want no more. A GET changes nothing, since scanners open
//! links too; a mail program's one click is a POST (RFC 8058).

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
    /// BCP 47.
    lang: Option<String>,
}

async fn page(
    mails: web::Data<dyn MailPreferenceService>,
    token: web::Path<String>,
    reader: web::Query<PreferenceQuery>,
) -> Result<HttpResponse, ApiError> {
    let choice = mails.mails(&token).await?;
    let shown = if choice.as_ref().is_some_and(|choice| choice.wanted) {
        UnsubscribePage::Ask
    } else {
        UnsubscribePage::Stopped
    };
    Ok(answer(&token, &reader, choice.as_ref(), shown))
}

/// Whatever the body says: programs and the page's own button mean the same.
async fn unsubscribe(
    mails: web::Data<dyn MailPreferenceService>,
    token: web::Path<String>,
    reader: web::Query<PreferenceQuery>,
) -> Result<HttpResponse, ApiError> {
    let choice = mails.choose_mails(&token, false).await?;
    Ok(answer(&token, &reader, choice.as_ref(), UnsubscribePage::Stopped))
}

async fn undo(
    mails: web::Data<dyn MailPreferenceService>,
    token: web::Path<String>,
    reader: web::Query<PreferenceQuery>,
) -> Result<HttpResponse, ApiError> {
    let choice = mails.choose_mails(&token, true).await?;
    Ok(answer(&token, &reader, choice.as_ref(), UnsubscribePage::Resumed))
}

fn answer(
    token: &str,
    reader: &PreferenceQuery,
    choice: Option<&MailPreference>,
    shown: UnsubscribePage,
) -> HttpResponse {
    let language = Language::of(reader.lang.as_deref());
    let sender = choice.and_then(|choice| choice.sender.as_ref()).map(BrandName::as_str);
    let (status, shown) = match choice {
        Some(_) => (StatusCode::OK, shown),
        None => (StatusCode::NOT_FOUND, UnsubscribePage::Unknown),
    };
    let page = unsubscribe_page(language.tag(), language.direction(), sender, shown, token);
    HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, HTML))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page)
}
