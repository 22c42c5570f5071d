//! The site of `acme-town-library`: pages of HTML alone, in Arabic, from right to left. It works
//! without any script. The user name decides what happens.

mod loans;
mod pages;

use actix_web::{HttpRequest, HttpResponse, cookie::Cookie, http::StatusCode, web};
use serde::Deserialize;
use uuid::Uuid;

use self::pages::Notice;
use crate::{responses, sessions::Sessions};

/// The host name of the site.
pub(crate) const HOST: &str = "library.sandbox.localhost";
const COOKIE: &str = "library_sid";
/// The cookie of those who have read the notice about cookies.
const NOTICE_READ: &str = "library_notice";
const CODE: &str = "123456";

/// The site, with its sessions by the value of the cookie.
#[derive(Default)]
pub(crate) struct LibrarySite {
    readers: Sessions<Reader>,
}

#[derive(Clone, Copy)]
struct Reader {
    csrf: Uuid,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Out,
    Code,
    In(User),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Ok,
    OnePage,
    NoLoans,
    LogoutMidway,
}

/// The outcome of a sign-in.
enum SignIn {
    To(Stage),
    Refused(Notice),
    Maintenance,
}

impl SignIn {
    fn of(user: &str) -> Self {
        match user {
            "ok" => Self::To(Stage::In(User::Ok)),
            "otp" => Self::To(Stage::Code),
            "one_page" => Self::To(Stage::In(User::OnePage)),
            "no_loans" => Self::To(Stage::In(User::NoLoans)),
            "logout_midway" => Self::To(Stage::In(User::LogoutMidway)),
            "maintenance" => Self::Maintenance,
            "locked" => Self::Refused(Notice::Locked),
            _ => Self::Refused(Notice::WrongPassword),
        }
    }
}

impl Stage {
    /// Returns the page that a reader is led to.
    const fn page(self) -> &'static str {
        match self {
            Self::Out => "/login",
            Self::Code => "/code",
            Self::In(_) => "/loans",
        }
    }
}

/// A request for a page, with the session that it belongs to.
struct Visit {
    id: Uuid,
    reader: Reader,
    has_read_notice: bool,
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/", web::get().to(home))
        .route("/login", web::get().to(login))
        .route("/login", web::post().to(sign_in))
        .route("/code", web::get().to(code))
        .route("/code", web::post().to(check_code))
        .route("/cookies", web::post().to(read_notice))
        .route("/card", web::get().to(card))
        .route("/loans", web::get().to(loans))
        .route("/expired", web::get().to(expired))
        .route("/library.css", web::get().to(pages::style));
}

impl LibrarySite {
    /// Returns the visit of a request; creates a session if there is none.
    fn visit(&self, request: &HttpRequest) -> Visit {
        let (id, reader) = self
            .readers
            .of_cookie(request, COOKIE)
            .unwrap_or_else(|| self.begin(Reader { csrf: Uuid::new_v4(), stage: Stage::Out }));
        Visit { id, reader, has_read_notice: request.cookie(NOTICE_READ).is_some() }
    }

    fn begin(&self, reader: Reader) -> (Uuid, Reader) {
        (self.readers.create(reader), reader)
    }

    /// Leads a reader to the page of a stage, with a new session, against session fixation.
    fn lead(&self, visit: &Visit, stage: Stage) -> HttpResponse {
        self.readers.take(visit.id);
        let (id, _) = self.begin(Reader { csrf: Uuid::new_v4(), stage });
        pages::with_cookie(id, responses::redirect(stage.page()))
    }
}

async fn home(site: web::Data<LibrarySite>, request: HttpRequest) -> HttpResponse {
    responses::redirect(site.visit(&request).reader.stage.page())
}

async fn login(site: web::Data<LibrarySite>, request: HttpRequest) -> HttpResponse {
    pages::sign_in(&site.visit(&request), None)
}

#[derive(Deserialize)]
struct SignInForm {
    csrf: Uuid,
    user: String,
}

async fn sign_in(
    site: web::Data<LibrarySite>,
    request: HttpRequest,
    form: web::Form<SignInForm>,
) -> HttpResponse {
    let visit = site.visit(&request);
    if form.csrf != visit.reader.csrf {
        return pages::stale(&visit);
    }
    match SignIn::of(&form.user.trim().to_lowercase()) {
        SignIn::To(stage) => site.lead(&visit, stage),
        SignIn::Refused(notice) => pages::sign_in(&visit, Some(notice)),
        SignIn::Maintenance => pages::maintenance(&visit),
    }
}

async fn code(site: web::Data<LibrarySite>, request: HttpRequest) -> HttpResponse {
    let visit = site.visit(&request);
    if visit.reader.stage == Stage::Code {
        pages::code(&visit, None)
    } else {
        responses::redirect(visit.reader.stage.page())
    }
}

#[derive(Deserialize)]
struct CodeForm {
    csrf: Uuid,
    code: String,
}

async fn check_code(
    site: web::Data<LibrarySite>,
    request: HttpRequest,
    form: web::Form<CodeForm>,
) -> HttpResponse {
    let visit = site.visit(&request);
    if form.csrf != visit.reader.csrf || visit.reader.stage != Stage::Code {
        return pages::stale(&visit);
    }
    if form.code.trim() != CODE {
        return pages::code(&visit, Some(Notice::WrongCode));
    }
    site.lead(&visit, Stage::In(User::Ok))
}

#[derive(Deserialize)]
struct NoticeForm {
    csrf: Uuid,
}

async fn read_notice(
    site: web::Data<LibrarySite>,
    request: HttpRequest,
    form: web::Form<NoticeForm>,
) -> HttpResponse {
    let visit = site.visit(&request);
    if form.csrf != visit.reader.csrf {
        return pages::stale(&visit);
    }
    let mut response = responses::redirect(visit.reader.stage.page());
    // A cookie of letters is always a valid header value.
    let _ = response.add_cookie(&Cookie::build(NOTICE_READ, "read").path("/").finish());
    response
}

async fn card(site: web::Data<LibrarySite>, request: HttpRequest) -> HttpResponse {
    let visit = site.visit(&request);
    match visit.reader.stage {
        Stage::In(_) => pages::card(&visit),
        Stage::Out | Stage::Code => responses::redirect(visit.reader.stage.page()),
    }
}

#[derive(Deserialize)]
struct PageNumber {
    #[serde(default = "first_page")]
    page: usize,
}

const fn first_page() -> usize {
    1
}

async fn loans(
    site: web::Data<LibrarySite>,
    request: HttpRequest,
    number: web::Query<PageNumber>,
) -> HttpResponse {
    let visit = site.visit(&request);
    let Stage::In(user) = visit.reader.stage else {
        return responses::redirect(visit.reader.stage.page());
    };
    if user == User::LogoutMidway && number.page > 1 {
        site.readers.take(visit.id);
        return responses::redirect("/expired");
    }
    match loans::page(user, number.page) {
        Some(page) => pages::loans(&visit, &page),
        None => HttpResponse::build(StatusCode::NOT_FOUND).finish(),
    }
}

/// The page of a session that timed out.
async fn expired(site: web::Data<LibrarySite>, request: HttpRequest) -> HttpResponse {
    pages::expired(&site.visit(&request))
}
