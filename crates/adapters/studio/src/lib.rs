//! The studio's pages and its API for them (actix-web).

mod elsewhere;

use std::{future::Future, pin::Pin, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{self, ContentType},
    },
    middleware::from_fn,
    web,
};
use authoring::{
    ChosenSource, Edit, PageKind, PublicationError, RunFrom, Studio, StudioError, Studios,
    TriedReading,
};
use ports::driving::SignedInUser;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::elsewhere::{Elsewhere, Forward};

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
    ("address.js", SCRIPT, include_str!("../web/address.js")),
    ("api.js", SCRIPT, include_str!("../web/api.js")),
    ("card.js", SCRIPT, include_str!("../web/card.js")),
    ("definition.js", SCRIPT, include_str!("../web/definition.js")),
    ("dom.js", SCRIPT, include_str!("../web/dom.js")),
    ("fields.js", SCRIPT, include_str!("../web/fields.js")),
    ("inspection.js", SCRIPT, include_str!("../web/inspection.js")),
    ("marking.js", SCRIPT, include_str!("../web/marking.js")),
    ("pages.js", SCRIPT, include_str!("../web/pages.js")),
    ("reading.js", SCRIPT, include_str!("../web/reading.js")),
    ("responses.js", SCRIPT, include_str!("../web/responses.js")),
    ("run.js", SCRIPT, include_str!("../web/run.js")),
    ("store.js", SCRIPT, include_str!("../web/store.js")),
    ("studio.js", SCRIPT, include_str!("../web/studio.js")),
    ("tree.js", SCRIPT, include_str!("../web/tree.js")),
    ("widgets.js", SCRIPT, include_str!("../web/widgets.js")),
    ("words.js", SCRIPT, include_str!("../web/words.js")),
];
const PAGE: &str = include_str!("../web/index.html");

/// Returns the author who is signed in, of a request.
pub type SignedInAuthor =
    Arc<dyn Fn(HttpRequest) -> Pin<Box<dyn Future<Output = Option<SignedInUser>>>> + Send + Sync>;

/// The open studios, and who may use them: each has a key of 256 random bits, which is part of its
/// address, and may belong to an author who has to be signed in as well.
#[derive(Clone)]
pub struct StudioAccess {
    pub studios: Studios,
    pub author: SignedInAuthor,
    /// The studios of other instances; `None` for a process that is alone, and for requests that another
    /// instance has forwarded.
    pub elsewhere: Option<Elsewhere>,
}

/// Adds the page, at `/studio/{key}/`, and its API.
pub fn routes(access: StudioAccess) -> impl FnOnce(&mut web::ServiceConfig) {
    move |config| {
        let json = web::JsonConfig::default()
            .limit(MAX_BODY_BYTES)
            .error_handler(|error, _| BadRequest(error.to_string()).into());
        config.service(
            web::scope("/studio/{key}")
                .app_data(web::Data::new(access))
                .app_data(json)
                .route("/", web::get().to(page))
                .route("/{file}", web::get().to(file))
                .route("/api/state", web::get().to(state))
                .route("/api/inspect", web::post().to(inspect))
                .route("/api/element", web::post().to(element))
                .route("/api/find", web::post().to(find))
                .route("/api/responses/{number}", web::get().to(response))
                .route("/api/member", web::post().to(member))
                .route("/api/address", web::post().to(address))
                .route("/api/suggest", web::post().to(suggest))
                .route("/api/reading", web::post().to(reading))
                .route("/api/schema", web::get().to(schema))
                .route("/api/back", web::post().to(back))
                .route("/api/edit", web::post().to(edit))
                .route("/api/run", web::post().to(run))
                .route("/api/save", web::post().to(save))
                .route("/api/publish", web::post().to(publish))
                .route("/api/probe", web::post().to(probe))
                .wrap(from_fn(elsewhere::answer)),
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
    /// There is no studio with the key.
    Unknown,
    /// The author of the studio is not signed in.
    SignedOut,
    /// Another site sent the request.
    Foreign,
    Studio(StudioError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no studio at this address"),
            Self::SignedOut => f.write_str("sign in to the portal again to go on"),
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
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::Studio(_) => match self.confirmation_page() {
                Some(_) => StatusCode::FORBIDDEN,
                None => StatusCode::UNPROCESSABLE_ENTITY,
            },
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut body = json!({ "message": self.to_string() });
        if let (Some(page), Some(members)) = (self.confirmation_page(), body.as_object_mut()) {
            members.insert("confirm".to_owned(), page.into());
        }
        HttpResponse::build(self.status_code()).json(body)
    }
}

impl Refused {
    /// Returns the path of the page on which the author has to re-authenticate first.
    fn confirmation_page(&self) -> Option<&str> {
        if let Self::Studio(StudioError::Publication(PublicationError::Unconfirmed { page })) = self
        {
            Some(page)
        } else {
            None
        }
    }
}

/// Returns the studio of a request by its key, if its author may use it, and the author who is signed
/// in.
async fn studio_of(request: &HttpRequest) -> Result<(Arc<Studio>, Option<SignedInUser>), Refused> {
    let access = request.app_data::<web::Data<StudioAccess>>().ok_or(Refused::Unknown)?;
    let key = request.match_info().get("key").unwrap_or_default();
    if !access.studios.requires_sign_in(key) {
        let studio = access.studios.find(key, None).ok_or(Refused::Unknown)?;
        return Ok((studio, None));
    }
    let author = (access.author)(request.clone()).await;
    let found = access.studios.find(key, author.as_ref().map(|author| author.user));
    Ok((found.ok_or(Refused::SignedOut)?, author))
}

/// Returns the studio of a request that no other site has sent (Fetch Metadata Request Headers,
/// section 2.3).
async fn studio(request: &HttpRequest) -> Result<Arc<Studio>, Refused> {
    authored_studio(request).await.map(|(studio, _)| studio)
}

/// Returns the same, with the author who has sent the request.
async fn authored_studio(
    request: &HttpRequest,
) -> Result<(Arc<Studio>, Option<SignedInUser>), Refused> {
    let found = studio_of(request).await?;
    let site = request.headers().get("sec-fetch-site").map(header::HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err(Refused::Foreign);
    }
    Ok(found)
}

/// Returns what a studio computes on a page, which may take seconds on a large one.
async fn computed<T: Serialize + Send + 'static>(
    compute: impl FnOnce() -> Result<T, StudioError> + Send + 'static,
) -> Result<HttpResponse, Refused> {
    let found = web::block(compute).await.map_err(|_| StudioError::NoInspection)??;
    Ok(HttpResponse::Ok().json(found))
}

async fn page(request: HttpRequest) -> HttpResponse {
    // It may be opened by a link elsewhere.
    if let Err(refused) = studio_of(&request).await {
        return refused.page();
    }
    HttpResponse::Ok()
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(ContentType::html())
        .body(PAGE)
}

async fn file(request: HttpRequest) -> Result<HttpResponse, Refused> {
    studio(&request).await?;
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
    let studio = studio(&request).await?;
    studio.changed(query.after).await;
    Ok(HttpResponse::Ok().json(studio.view()))
}

async fn inspect(request: HttpRequest) -> Result<HttpResponse, Refused> {
    Ok(HttpResponse::Ok().json(studio(&request).await?.inspect().await?))
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
    let studio = studio(&request).await?;
    computed(move || studio.element(chosen.inspection, chosen.node)).await
}

#[derive(Deserialize)]
struct Wanted {
    inspection: u64,
    selector: String,
}

async fn find(request: HttpRequest, wanted: web::Json<Wanted>) -> Result<HttpResponse, Refused> {
    let studio = studio(&request).await?;
    computed(move || studio.find(wanted.inspection, &wanted.selector)).await
}

async fn response(request: HttpRequest) -> Result<HttpResponse, Refused> {
    let studio = studio(&request).await?;
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
    let studio = studio(&request).await?;
    computed(move || studio.member(chosen.response, &chosen.pointer)).await
}

async fn address(
    request: HttpRequest,
    from: web::Json<ChosenSource>,
) -> Result<HttpResponse, Refused> {
    Ok(HttpResponse::Ok().json(studio(&request).await?.address(&from).await?))
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
    let studio = studio(&request).await?;
    let other_screen = studio.other_screen(inspection).await;
    computed(move || studio.suggest(kind, inspection, node, other_screen.as_deref())).await
}

async fn reading(
    request: HttpRequest,
    tried: web::Json<TriedReading>,
) -> Result<HttpResponse, Refused> {
    Ok(HttpResponse::Ok().json(studio(&request).await?.try_reading(tried.into_inner()).await?))
}

async fn schema(request: HttpRequest) -> Result<HttpResponse, Refused> {
    let schema = studio(&request).await?.schema();
    Ok(HttpResponse::Ok().insert_header(ContentType::json()).body(schema))
}

async fn back(request: HttpRequest) -> Result<HttpResponse, Refused> {
    studio(&request).await?.back()?;
    Ok(HttpResponse::Ok().json(json!({})))
}

async fn edit(request: HttpRequest, edit: web::Json<Edit>) -> Result<HttpResponse, Refused> {
    studio(&request).await?.edit(edit.into_inner()).await?;
    Ok(HttpResponse::Ok().json(json!({})))
}

#[derive(Deserialize)]
struct Begin {
    from: RunFrom,
}

async fn run(request: HttpRequest, begin: web::Json<Begin>) -> Result<HttpResponse, Refused> {
    studio(&request).await?.run(begin.from).await?;
    Ok(HttpResponse::Ok().json(json!({})))
}

async fn save(request: HttpRequest) -> Result<HttpResponse, Refused> {
    let files = studio(&request).await?.save().await?;
    Ok(HttpResponse::Ok().json(json!({ "files": files })))
}

#[derive(Deserialize)]
struct Publication {
    /// The share of new sessions that run the version, in percent; all if it is left out.
    #[serde(default)]
    percent: Option<u8>,
}

async fn publish(
    request: HttpRequest,
    publication: web::Json<Publication>,
) -> Result<HttpResponse, Refused> {
    let (studio, author) = authored_studio(&request).await?;
    let version = studio.publish(author.as_ref(), publication.percent).await?;
    Ok(HttpResponse::Ok().json(json!({ "version": version })))
}

async fn probe(request: HttpRequest) -> Result<HttpResponse, Refused> {
    let hosts = studio(&request).await?.probe().await?;
    let hosts: Vec<_> = hosts
        .into_iter()
        .map(|found| {
            json!({ "host": found.host, "canAttest": found.can_attest, "reasons": found.reasons })
        })
        .collect();
    Ok(HttpResponse::Ok().json(json!({ "hosts": hosts })))
}
