//! The embed page and its assets. A GET changes nothing: mail scanners open links too.

use actix_web::{
    HttpResponse,
    http::header::{
        ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    },
    web,
};
use domain::{ancestors::Ancestor, id::SessionId};
use ports::driving::ApplicantService;
use serde::Deserialize;

use super::{error::ApiError, stream};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
     blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/embed/assets/{build}/{name:.+}", web::get().to(asset))
        .route("/embed.js", web::get().to(async || public(embed::module().0)))
        .route("/embed.d.ts", web::get().to(async || public(embed::module().1)))
        .route("/embed/{id}/stream", web::get().to(stream::open))
        .route("/embed/{id}", web::get().to(page))
        .route("/embed/{id}", web::head().to(page))
        .route("/watch/{id}/stream", web::get().to(stream::watch::open))
        .route("/watch/{id}", web::get().to(watch_page))
        .route("/watch/{id}", web::head().to(watch_page));
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
}

/// The same page whatever the session: who has no token learns nothing here. Whose page may be
/// around it is for whoever has the link, too.
async fn page(
    applicants: web::Data<dyn ApplicantService>,
    id: web::Path<String>,
    token: web::Query<Token>,
) -> Result<HttpResponse, ApiError> {
    let ancestors = match id.parse::<SessionId>() {
        Ok(id) => applicants.ancestors(id, &token.token).await?,
        Err(_) => vec![],
    };
    Ok(html(embed::page(), &ancestors))
}

async fn watch_page() -> HttpResponse {
    html(embed::watch_page(), &[])
}

fn html(page: &'static str, ancestors: &[Ancestor]) -> HttpResponse {
    let ancestors: Vec<_> = ancestors.iter().map(ToString::to_string).collect();
    let ancestors = if ancestors.is_empty() { "*".to_owned() } else { ancestors.join(" ") };
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, format!("{POLICY}{ancestors}")))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page)
}

/// For pages of any origin: there is nothing in it that is anybody's.
fn public(asset: embed::Asset) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, asset.content_type))
        .insert_header((CACHE_CONTROL, "public, max-age=3600"))
        .insert_header((ACCESS_CONTROL_ALLOW_ORIGIN, "*"))
        .insert_header(("Cross-Origin-Resource-Policy", "cross-origin"))
        .body(asset.content)
}

async fn asset(path: web::Path<(String, String)>) -> Result<HttpResponse, ApiError> {
    let (build, name) = path.into_inner();
    if build != embed::build() {
        return Err(ApiError::NotFound);
    }
    let asset = embed::asset(&name).ok_or(ApiError::NotFound)?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, asset.content_type))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .insert_header(("Cross-Origin-Resource-Policy", "same-origin"))
        .body(asset.content))
}
