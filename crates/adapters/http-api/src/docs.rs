//! The documentation for partners at `/docs`.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    middleware::Compress,
    web,
};
use documentation::Asset;

use super::{error::ApiError, icons::PublicUrl, methods::reading, openapi};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     base-uri 'self'; form-action 'none'; frame-ancestors 'none'";
/// The address in examples, which pages show as that of this deployment.
const EXAMPLE_URL: &str = "https://avouch.example";
/// The place of the API reference in its page.
const REFERENCE_PLACE: &str = "<div id=\"operations\"></div>";
const REFERENCE_PAGE: &str = "reference.html";

static REFERENCE: LazyLock<String> = LazyLock::new(openapi::reference);

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.service(web::redirect("/docs", "/docs/")).service(
        // Compression is safe here: the pages contain no secret whose length it could reveal.
        web::resource("/docs/{file:.*}").wrap(Compress::default()).route(reading().to(file)),
    );
}

async fn file(
    name: web::Path<String>,
    public_url: web::Data<PublicUrl>,
) -> Result<HttpResponse, ApiError> {
    let (status, asset) = match documentation::file(&name) {
        Some(asset) => (StatusCode::OK, asset),
        None => (StatusCode::NOT_FOUND, documentation::file("404.html").ok_or(ApiError::NotFound)?),
    };
    let Asset { content_type, content, immutable } = asset;
    let cache = if immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CONTENT_TYPE, content_type))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((CACHE_CONTROL, cache));
    if !content_type.starts_with("text/html") {
        return Ok(response.body(content));
    }
    let page = String::from_utf8_lossy(content);
    let page = if name.as_str() == REFERENCE_PAGE {
        page.replace(REFERENCE_PLACE, &REFERENCE)
    } else {
        page.into_owned()
    };
    Ok(response.body(page.replace(EXAMPLE_URL, &escaped(&public_url.0))))
}

/// Escapes a text for HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
