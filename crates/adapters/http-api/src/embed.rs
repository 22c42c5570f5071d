//! The embed page and its assets. A GET changes nothing, since mail scanners open links too.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    dev::Payload,
    http::header::{
        ACCEPT_LANGUAGE, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY,
        CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
    },
    middleware::Compress,
    web,
};
use domain::{
    branding::BrandName,
    frame_ancestors::FrameAncestor,
    https_url::HttpsUrl,
    id::{InstanceId, SessionId},
    language::Language,
};
use ports::driving::{
    ApplicantService, BodyBounds, ForwardSender, Forwarding, Introduction, LinkState,
    PageAppearance, StudioOwner, StudioRouter,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{HTML, error::ApiError, forwarding::forward, stream};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
     blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ";

/// How long the page waits for the instance of a studio.
const STUDIO_TIMEOUT: Duration = Duration::from_secs(5);
/// Languages of a browser that are considered.
const MAX_LANGUAGES: usize = 10;
/// Bytes of a language tag; RFC 5646, section 4.4.1, recommends room for 35.
const MAX_TAG_BYTES: usize = 35;

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
        .configure(page_routes)
        .route("/watch/{id}/stream", web::get().to(stream::observer::open))
        .route("/watch/{id}", web::get().to(watch_page))
        .route("/watch/{id}", web::head().to(watch_page));
}

/// The embed page without its files and its stream.
pub(super) fn page_routes(config: &mut web::ServiceConfig) {
    config.route("/embed/{id}", web::get().to(page)).route("/embed/{id}", web::head().to(page));
}

#[derive(Deserialize)]
struct EmbedQuery {
    #[serde(default)]
    token: String,
}

/// Serves the embed page. Without a valid token the page is the same for every session; the allowed
/// frame ancestors, the brand, the language and the introduction are those of the session whose token
/// is given.
async fn page(
    applicants: web::Data<dyn ApplicantService>,
    id: web::Path<String>,
    token: web::Query<EmbedQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let languages = accepted_languages(&request);
    let appearance = appearance(&**applicants, &id, &token, &languages).await?;
    let PageAppearance { ancestors, brand, language, link, introduction, studio, is_draft } =
        appearance;
    if let Some(response) = of_studio(&request, studio).await {
        return Ok(response);
    }
    let (name, colour) = (brand.name, brand.colour.map(|colour| colour.to_string()));
    // The URL is set only for a session that exists and whose brand has a logo, so identifier and
    // token are valid.
    let logo = brand.logo.map(|_| format!("/embed/{id}/logo?token={}", token.token));
    let link = match link {
        LinkState::Invalid => None,
        LinkState::New => Some("new"),
        LinkState::Begun => Some("begun"),
        LinkState::Over => Some("over"),
    };
    let introduction = introduction.map(|introduction| introduced(&introduction).to_string());
    let page = embed::page(&embed::EmbedAppearance {
        language: language.map(Language::tag),
        name: name.as_ref().map(BrandName::as_str),
        colour: colour.as_deref(),
        logo: logo.as_deref(),
        link,
        introduction: introduction.as_deref(),
        is_studio: is_draft,
    });
    Ok(html(page, &ancestors))
}

/// Returns the page of a draft as the instance serves it that has its studio. If that does not answer soon or
/// fails, or this one forwards too many requests, the page is served here, without what is in the definition.
async fn of_studio(request: &HttpRequest, studio: Option<InstanceId>) -> Option<HttpResponse> {
    let router = request.app_data::<web::Data<dyn StudioRouter>>()?;
    let to = router.locate(StudioOwner::Instance(studio?)).ok()??;
    let router = router.clone().into_inner();
    // A page is asked for without a body.
    let bounds = BodyBounds { bytes: 0, time: STUDIO_TIMEOUT };
    let forwarding = Forwarding { sender: ForwardSender::Frames, to, bounds };
    let answered = forward(router, forwarding, request.clone(), Payload::None);
    let answered = tokio::time::timeout(STUDIO_TIMEOUT, answered).await.ok()?.ok()?;
    Some(answered).filter(|answered| !answered.status().is_server_error())
}

fn introduced(introduction: &Introduction) -> Value {
    json!({
        "partner": introduction.partner,
        "platform": introduction.platform,
        "purpose": introduction.purpose,
        "reads": introduction.reads,
        "returnUrl": introduction.return_url.as_ref().map(HttpsUrl::as_str),
        "privacyUrl": introduction.privacy_url.as_ref().map(HttpsUrl::as_str),
        "reference": introduction.reference,
    })
}

/// Returns the languages that the browser prefers, in the order of the header, which is that of the
/// preferences in all browsers. Weights are not read.
fn accepted_languages(request: &HttpRequest) -> Vec<String> {
    let header = request.headers().get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let tags = header.unwrap_or_default().split(',').take(MAX_LANGUAGES);
    let tag = |range: &str| range.split(';').next().unwrap_or_default().trim().to_owned();
    tags.map(tag).filter(|tag| (1..=MAX_TAG_BYTES).contains(&tag.len())).collect()
}

async fn appearance(
    applicants: &dyn ApplicantService,
    id: &str,
    token: &EmbedQuery,
    languages: &[String],
) -> Result<PageAppearance, ApiError> {
    let Ok(id) = id.parse::<SessionId>() else { return Ok(PageAppearance::default()) };
    Ok(applicants.appearance(id, &token.token, languages).await?)
}

/// Serves the logo of the session's team.
async fn logo(
    applicants: web::Data<dyn ApplicantService>,
    id: web::Path<String>,
    token: web::Query<EmbedQuery>,
) -> Result<HttpResponse, ApiError> {
    let appearance = appearance(&**applicants, &id, &token, &[]).await?;
    let logo = appearance.brand.logo.ok_or(ApiError::NotFound)?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actix_web::test::TestRequest;
    use ports::{
        driving::{ForwardError, ForwardPermit, MockStudioRouter, OtherInstance},
        instances::ForwardedResponse,
    };

    use super::*;

    /// Returns a router whose other instance answers each request in this way.
    fn answering(answer: Result<u16, ForwardError>) -> MockStudioRouter {
        let mut router = MockStudioRouter::new();
        router.expect_locate().returning(|_| {
            let address = "10.0.0.2:1".to_owned();
            Ok(Some(OtherInstance { id: InstanceId::from_u128(2), address }))
        });
        router.expect_permit().returning(|sender| {
            assert_eq!(sender, ForwardSender::Frames);
            Ok(ForwardPermit::new(()))
        });
        router.expect_forward().returning(move |_, _, _| {
            answer.map(|status| ForwardedResponse { status, headers: vec![], body: vec![] })
        });
        router
    }

    #[actix_web::test]
    async fn the_page_of_a_draft_is_served_here_where_the_instance_of_its_studio_fails() {
        for (answer, passed_on) in [
            (Ok(200), Some(200)),
            (Ok(404), Some(404)),
            (Ok(500), None),
            (Ok(503), None),
            (Err(ForwardError::Unreachable), None),
        ] {
            let router: Arc<dyn StudioRouter> = Arc::new(answering(answer));
            let request = TestRequest::default().app_data(web::Data::from(router));
            let studio = Some(InstanceId::from_u128(2));
            let response = of_studio(&request.to_http_request(), studio).await;
            assert_eq!(response.map(|response| response.status().as_u16()), passed_on);
        }
    }

    #[test]
    fn the_languages_of_a_browser_are_read_within_bounds() {
        let read = |header: &str| {
            let request = TestRequest::default().insert_header((ACCEPT_LANGUAGE, header));
            accepted_languages(&request.to_http_request())
        };
        assert_eq!(read("de-AT,de;q=0.9, en;q=0.8"), ["de-AT", "de", "en"]);
        assert_eq!(read(""), [""; 0]);
        assert_eq!(read(&"x".repeat(36)), [""; 0]);
        assert_eq!(read(&"en,".repeat(100)).len(), MAX_LANGUAGES);
    }

    #[test]
    fn an_introduction_has_what_the_page_shows() {
        let introduction = Introduction {
            partner: "Lender".into(),
            platform: "Acme".into(),
            purpose: None,
            reads: vec!["Name".into()],
            return_url: HttpsUrl::new("https://lender.example/"),
            privacy_url: HttpsUrl::new("https://lender.example/privacy"),
            reference: "ABCD-EFGH".into(),
        };
        let expected = json!({
            "partner": "Lender", "platform": "Acme", "purpose": null, "reads": ["Name"],
            "returnUrl": "https://lender.example/",
            "privacyUrl": "https://lender.example/privacy", "reference": "ABCD-EFGH",
        });
        assert_eq!(introduced(&introduction), expected);
    }
}
