//! The style and the script of all pages, kept by browsers for as long as they are the same.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::LazyLock,
};

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web,
};

use crate::error::PageError;

const STYLE: &str = include_str!("../web/style.css");
const SCRIPT: &str = include_str!("../web/portal.js");

static BUILD: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    (STYLE, SCRIPT).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
});

/// Names what the assets are in this build.
pub(crate) fn build() -> &'static str {
    &BUILD
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/portal/assets/{build}/{name}", web::get().to(asset));
}

async fn asset(path: web::Path<(String, String)>) -> Result<HttpResponse, PageError> {
    let (content, kind) = match path.1.as_str() {
        "style.css" => (STYLE, "text/css; charset=utf-8"),
        "portal.js" => (SCRIPT, "text/javascript; charset=utf-8"),
        _ => return Err(PageError::NotThere),
    };
    if path.0 != build() {
        return Err(PageError::NotThere);
    }
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, kind))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .insert_header(("Cross-Origin-Resource-Policy", "same-origin"))
        .body(content))
}
