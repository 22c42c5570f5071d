//! The embed page and its assets. A GET changes nothing: mail scanners open links too.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    web,
};

use super::{error::ApiError, stream};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
     blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/embed/assets/{build}/{name}", web::get().to(asset))
        .route("/embed/{id}/stream", web::get().to(stream::open))
        .route("/embed/{id}", web::get().to(page))
        .route("/embed/{id}", web::head().to(page))
        .route("/watch/{id}/stream", web::get().to(stream::watch::open))
        .route("/watch/{id}", web::get().to(watch_page))
        .route("/watch/{id}", web::head().to(watch_page));
}

/// The same page whatever the session: who has no token learns nothing here.
async fn page(_: HttpRequest) -> HttpResponse {
    html(embed::page())
}

async fn watch_page(_: HttpRequest) -> HttpResponse {
    html(embed::watch_page())
}

fn html(page: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page)
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
