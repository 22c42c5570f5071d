//! The studio's pages and its API for them (actix-web).

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{self, ContentType},
    },
    web,
};
use authoring::{Edit, PageKind, RunFrom, Studio, StudioError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use subtle::ConstantTimeEq as _;

/// The maximum length of a request: a definition as text, in JSON.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;
/// The page has everything from this server, shows the browser in a frame, and is in no frame itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     frame-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of the page, with their media types.
const FILES: &[(&str, &str, &str)] = &[
    ("studio.css", "text/css; charset=utf-8", include_str!("../web/studio.css")),
    ("api.js", SCRIPT, include_str!("../web/api.js")),
    ("card.js", SCRIPT, include_str!("../web/card.js")),
    ("definition.js", SCRIPT, include_str!("../web/definition.js")),
    ("dom.js", SCRIPT, include_str!("../web/dom.js")),
    ("fields.js", SCRIPT, include_str!("../web/fields.js")),
    ("inspection.js", SCRIPT, include_str!("../web/inspection.js")),
    ("marking.js", SCRIPT, include_str!("../web/marking.js")),
    ("pages.js", SCRIPT, include_str!("../web/pages.js")),
    ("responses.js", SCRIPT, include_str!("../web/responses.js")),
    ("run.js", SCRIPT, include_str!("../web/run.js")),
    ("store.js", SCRIPT, include_str!("../web/store.js")),
    ("studio.js", SCRIPT, include_str!("../web/studio.js")),
    ("tree.js", SCRIPT, include_str!("../web/tree.js")),
    ("widgets.js", SCRIPT, include_str!("../web/widgets.js")),
    ("words.js", SCRIPT, include_str!("../web/words.js")),
];
const PAGE: &str = include_str!("../web/index.html");

/// The studio of one author, who knows its token.
#[derive(Clone)]
pub struct LocalStudio {
    pub studio: Arc<Studio>,
    /// Part of the address: whoever has it controls the browser.
    pub token: Arc<str>,
}

/// Adds the page, at `/studio/{token}/`, and its API.
pub fn routes(studio: LocalStudio) -> impl FnOnce(&mut web::ServiceConfig) {
    move |config| {
        let json = web::JsonConfig::default()
            .limit(MAX_BODY_BYTES)
            .error_handler(|error, _| BadRequest(error.to_string()).into());
        config.service(
            web::scope("/studio/{token}")
                .app_data(web::Data::new(studio))
                .app_data(json)
                .route("/", web::get().to(page))
                .route("/{file}", web::get().to(file))
                .route("/api/state", web::get().to(state))
                .route("/api/inspect", web::post().to(inspect))
                .route("/api/element", web::post().to(element))
                .route("/api/responses/{number}", web::get().to(response))
                .route("/api/member", web::post().to(member))
                .route("/api/suggest", web::post().to(suggest))
                .route("/api/edit", web::post().to(edit))
                .route("/api/run", web::post().to(run))
                .route("/api/save", web::post().to(save)),
        );
    }
}

/// A request that cannot be read.
#[derive(Debug)]
struct BadRequest(String);

impl std::fmt::Display for BadRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl ResponseError for BadRequest {
    fn status_code(&self) -> StatusCode {
        StatusCode::BAD_REQUEST
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::BadRequest().json(json!({ "message": self.0 }))
    }
}

/// A request that is refused, with its reason.
#[derive(Debug)]
enum Refused {
    /// The token is not that of the studio.
    Unknown,
    /// Another site sent the request.
    Foreign,
    Studio(StudioError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no studio at this address"),
            Self::Foreign => f.write_str("only the studio's own page may do this"),
            Self::Studio(error) => error.fmt(f),
        }
    }
}

impl From<StudioError> for Refused {
    fn from(error: StudioError) -> Self {
        Self::Studio(error)
    }
}

impl ResponseError for Refused {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::Studio(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(json!({ "message": self.to_string() }))
    }
}

/// Returns the studio of a request with the right token that no other site has sent (Fetch Metadata
/// Request Headers, section 2.3).
fn studio(request: &HttpRequest) -> Result<Arc<Studio>, Refused> {
    let local = request.app_data::<web::Data<LocalStudio>>().ok_or(Refused::Unknown)?;
    let token = request.match_info().get("token").unwrap_or_default();
    if !bool::from(token.as_bytes().ct_eq(local.token.as_bytes())) {
        return Err(Refused::Unknown);
    }
    let site = request.headers().get("sec-fetch-site").map(header::HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err(Refused::Foreign);
    }
    Ok(local.studio.clone())
}

/// Returns what a studio computes on a page, which may take seconds on a large one.
async fn computed<T: Serialize + Send + 'static>(
    compute: impl FnOnce() -> Result<T, StudioError> + Send + 'static,
) -> Result<HttpResponse, Refused> {
    let found = web::block(compute).await.map_err(|_| StudioError::NoInspection)??;
    Ok(HttpResponse::Ok().json(found))
}

async fn page(request: HttpRequest) -> Result<HttpResponse, Refused> {
    // Opened by a link in a terminal.
    match studio(&request) {
        Ok(_) | Err(Refused::Foreign) => (),
        Err(refused) => return Err(refused),
    }
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(ContentType::html())
        .body(PAGE))
}

async fn file(request: HttpRequest) -> Result<HttpResponse, Refused> {
    studio(&request)?;
    let wanted = request.match_info().get("file").unwrap_or_default();
    let found = FILES.iter().find(|(name, _, _)| *name == wanted);
    let (_, media_type, text) = found.ok_or(Refused::Unknown)?;
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, *media_type))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(*text))
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn state(request: HttpRequest, query: web::Query<After>) -> Result<HttpResponse, Refused> {
    let studio = studio(&request)?;
    studio.changed(query.after).await;
    Ok(HttpResponse::Ok().json(studio.view()))
}

async fn inspect(request: HttpRequest) -> Result<HttpResponse, Refused> {
    Ok(HttpResponse::Ok().json(studio(&request)?.inspect().await?))
}

#[derive(Deserialize)]
struct ChosenElement {
    inspection: u64,
    node: usize,
}

async fn element(
    request: HttpRequest,
    chosen: web::Json<ChosenElement>,
) -> Result<HttpResponse, Refused> {
    let studio = studio(&request)?;
    computed(move || studio.element(chosen.inspection, chosen.node)).await
}

async fn response(request: HttpRequest) -> Result<HttpResponse, Refused> {
    let studio = studio(&request)?;
    let number = request.match_info().get("number").and_then(|number| number.parse().ok());
    Ok(HttpResponse::Ok().json(studio.response(number.ok_or(StudioError::NoResponse)?)?))
}

#[derive(Deserialize)]
struct ChosenMember {
    response: u64,
    pointer: String,
}

async fn member(
    request: HttpRequest,
    chosen: web::Json<ChosenMember>,
) -> Result<HttpResponse, Refused> {
    let studio = studio(&request)?;
    computed(move || studio.member(chosen.response, &chosen.pointer)).await
}

#[derive(Deserialize)]
struct ChosenPage {
    kind: PageKind,
    inspection: u64,
    node: Option<usize>,
}

async fn suggest(
    request: HttpRequest,
    chosen: web::Json<ChosenPage>,
) -> Result<HttpResponse, Refused> {
    let ChosenPage { kind, inspection, node } = chosen.into_inner();
    let studio = studio(&request)?;
    let conditions = move || studio.suggest(kind, inspection, node);
    computed(move || conditions().map(|conditions| json!({ "conditions": conditions }))).await
}

async fn edit(request: HttpRequest, edit: web::Json<Edit>) -> Result<HttpResponse, Refused> {
    studio(&request)?.edit(edit.into_inner()).await?;
    Ok(HttpResponse::Ok().json(json!({})))
}

#[derive(Deserialize)]
struct Begin {
    from: RunFrom,
}

async fn run(request: HttpRequest, begin: web::Json<Begin>) -> Result<HttpResponse, Refused> {
    studio(&request)?.run(begin.from).await?;
    Ok(HttpResponse::Ok().json(json!({})))
}

async fn save(request: HttpRequest) -> Result<HttpResponse, Refused> {
    let files = studio(&request)?.save().await?;
    Ok(HttpResponse::Ok().json(json!({ "files": files })))
}
