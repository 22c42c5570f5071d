//! The embed page and its assets. A GET changes nothing, since mail scanners open links too.

use actix_web::{
    HttpResponse,
    http::header::{
        ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
        X_CONTENT_TYPE_OPTIONS,
    },
    middleware::Compress,
    web,
};
use domain::{
    branding::BrandName, frame_ancestors::FrameAncestor, id::SessionId, language::Language,
};
use ports::driving::{ApplicantService, PageAppearance};
use serde::Deserialize;

use super::{HTML, error::ApiError, stream};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
     blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            // Compression is safe here: these files contain no secret whose length it could reveal
            // (RFC 9110, section 17.6).
            web::resource("/embed/assets/{build}/{name:.+}")
                .wrap(Compress::default())
                .route(web::get().to(asset)),
        )
        .route("/embed.js", web::get().to(async || public(embed::module().0)))
        .route("/embed.d.ts", web::get().to(async || public(embed::module().1)))
        .route("/embed/{id}/stream", web::get().to(stream::open))
        .route("/embed/{id}/logo", web::get().to(logo))
        .route("/embed/{id}", web::get().to(page))
        .route("/embed/{id}", web::head().to(page))
        .route("/watch/{id}/stream", web::get().to(stream::observer::open))
        .route("/watch/{id}", web::get().to(watch_page))
        .route("/watch/{id}", web::head().to(watch_page));
}

#[derive(Deserialize)]
struct EmbedQuery {
    #[serde(default)]
    token: String,
}

/// Serves the embed page. Without a valid token the page is the same for every session; the allowed
/// frame ancestors, the brand and the language are those of the session whose token is given.
async fn page(
    applicants: web::Data<dyn ApplicantService>,
    id: web::Path<String>,
    token: web::Query<EmbedQuery>,
) -> Result<HttpResponse, ApiError> {
    let PageAppearance { ancestors, brand, language } = guise(&**applicants, &id, &token).await?;
    let (name, colour) = (brand.name, brand.colour.map(|colour| colour.to_string()));
    // The URL is set only for a session that exists and whose brand has a logo, so identifier and
    // token are valid.
    let logo = brand.logo.map(|_| format!("/embed/{id}/logo?token={}", token.token));
    let page = embed::page(&embed::EmbedAppearance {
        language: language.map(Language::tag),
        name: name.as_ref().map(BrandName::as_str),
        colour: colour.as_deref(),
        logo: logo.as_deref(),
    });
    Ok(html(page, &ancestors))
}

async fn guise(
    applicants: &dyn ApplicantService,
    id: &str,
    token: &EmbedQuery,
) -> Result<PageAppearance, ApiError> {
    let Ok(id) = id.parse::<SessionId>() else { return Ok(PageAppearance::default()) };
    Ok(applicants.appearance(id, &token.token).await?)
}

/// Serves the logo of the session's team.
async fn logo(
    applicants: web::Data<dyn ApplicantService>,
    id: web::Path<String>,
    token: web::Query<EmbedQuery>,
) -> Result<HttpResponse, ApiError> {
    let guise = guise(&**applicants, &id, &token).await?;
    let logo = guise.brand.logo.ok_or(ApiError::NotFound)?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "image/png"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, "private, max-age=300"))
        .body(logo.bytes().to_vec()))
}

async fn watch_page() -> HttpResponse {
    html(embed::watch_page().to_owned(), &[])
}

fn html(page: String, ancestors: &[FrameAncestor]) -> HttpResponse {
    let ancestors: Vec<_> = ancestors.iter().map(ToString::to_string).collect();
    let ancestors = if ancestors.is_empty() { "*".to_owned() } else { ancestors.join(" ") };
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, HTML))
        .insert_header((CONTENT_SECURITY_POLICY, format!("{POLICY}{ancestors}")))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page)
}

/// Responds with a file that pages of every origin may load; it contains no data of anyone.
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
