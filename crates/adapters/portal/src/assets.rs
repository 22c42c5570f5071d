//! The style sheet and the script of all pages; browsers cache them until they change.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::LazyLock,
};

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web,
};

use crate::{error::PageError, methods::reading};

const STYLE: &str = include_str!("../web/style.css");
const SCRIPT: &str = include_str!("../web/portal.js");

static BUILD: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    (STYLE, SCRIPT).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
});

/// Returns a name of the assets' content in this build.
pub(crate) fn build() -> &'static str {
    &BUILD
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/portal/assets/{build}/{name}", reading(asset));
}

async fn asset(path: web::Path<(String, String)>) -> Result<HttpResponse, PageError> {
    let (content, kind) = match path.1.as_str() {
        "style.css" => (STYLE, "text/css; charset=utf-8"),
        "portal.js" => (SCRIPT, "text/javascript; charset=utf-8"),
        _ => return Err(PageError::NotFound),
    };
    if path.0 != build() {
        return Err(PageError::NotFound);
    }
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, kind))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .insert_header(("Cross-Origin-Resource-Policy", "same-origin"))
        .body(content))
}
