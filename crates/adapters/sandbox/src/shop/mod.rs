//! The site of `acme-web-shop`: a single-page application with a JSON API. Its customers sign in with
//! their Acme ID, in a window of its own.

mod orders;
mod refusal;

use actix_web::{
    HttpRequest, HttpResponse,
    cookie::{Cookie, SameSite},
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
    web,
};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use self::refusal::Refusal;
use crate::{
    accounts::{self, Accounts, User},
    responses,
    sessions::Sessions,
};

/// The host name of the site.
pub(crate) const HOST: &str = "shop.sandbox.localhost";
/// The shop as a client of the identity provider.
pub(crate) const CLIENT_ID: &str = "acme-web-shop";
/// The only address to which the provider sends codes.
pub(crate) const REDIRECT_URI: &str = "http://shop.sandbox.localhost/sign-in/callback";
const COOKIE: &str = "shop_sid";
/// The cookie with the token that the site's script sends as [`CSRF_HEADER`].
const CSRF_COOKIE: &str = "shop_csrf";
const CSRF_HEADER: &str = "x-csrf-token";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
/// The views of the application, which all have the same document.
const VIEWS: [&str; 4] = ["/", "/sign-in", "/orders", "/profile"];

/// The site, with its sessions by the value of the cookie.
#[derive(Default)]
pub(crate) struct ShopSite {
    customers: Sessions<Customer>,
}

#[derive(Clone, Copy)]
struct Customer {
    csrf: Uuid,
    /// The `state` of the sign-in that is under way.
    state: Option<Uuid>,
    user: Option<User>,
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    for view in VIEWS {
        config.route(view, web::get().to(async || page(include_str!("shop.html"))));
    }
    config
        .route("/sign-in/start", web::get().to(start))
        .route("/sign-in/callback", web::get().to(async || page(include_str!("callback.html"))))
        .route("/shop.js", web::get().to(async || responses::script(include_str!("shop.js"))))
        .route(
            "/callback.js",
            web::get().to(async || responses::script(include_str!("callback.js"))),
        )
        .route("/shop.css", web::get().to(async || responses::stylesheet(include_str!("shop.css"))))
        .route("/api/session", web::get().to(session))
        .route("/api/session", web::post().to(sign_in))
        .route("/api/session", web::delete().to(sign_out))
        .route("/api/profile", web::get().to(profile))
        .route("/api/orders", web::get().to(list_orders));
}

impl ShopSite {
    /// Returns the session of the cookie; creates one if there is none.
    fn customer(&self, request: &HttpRequest) -> (Uuid, Customer) {
        self.customers.of_cookie(request, COOKIE).unwrap_or_else(|| self.begin(None))
    }

    fn begin(&self, user: Option<User>) -> (Uuid, Customer) {
        let customer = Customer { csrf: Uuid::new_v4(), state: None, user };
        (self.customers.create(customer), customer)
    }

    /// Returns the session of a request of the site's own script.
    fn own(&self, request: &HttpRequest) -> Result<(Uuid, Customer), Refusal> {
        let (id, customer) = self.customer(request);
        let token = request.headers().get(CSRF_HEADER).and_then(|token| token.to_str().ok());
        if token.and_then(|token| token.parse().ok()) == Some(customer.csrf) {
            Ok((id, customer))
        } else {
            Err(Refusal::Csrf)
        }
    }

    /// Returns the user of a request of the site's own script.
    fn user(&self, request: &HttpRequest) -> Result<User, Refusal> {
        let (_, customer) = self.own(request)?;
        customer.user.ok_or(Refusal::SignedOut)
    }
}

/// Leads the window of the sign-in to the provider.
async fn start(site: web::Data<ShopSite>, request: HttpRequest) -> HttpResponse {
    let (id, customer) = site.customer(&request);
    let state = Uuid::new_v4();
    let customer = Customer { state: Some(state), ..customer };
    site.customers.update(id, customer);
    let provider = accounts::HOST;
    let to = format!(
        "http://{provider}/authorize?response_type=code&client_id={CLIENT_ID}\
         &redirect_uri={REDIRECT_URI}&state={state}"
    );
    with_cookies(id, customer, responses::redirect(&to))
}

async fn session(site: web::Data<ShopSite>, request: HttpRequest) -> HttpResponse {
    let (id, customer) = site.customer(&request);
    described(id, customer)
}

#[derive(Deserialize)]
struct Authorization {
    code: Uuid,
    state: Uuid,
}

/// Exchanges the code that the window of the sign-in got for the account.
async fn sign_in(
    site: web::Data<ShopSite>,
    accounts: web::Data<Accounts>,
    request: HttpRequest,
    given: web::Json<Authorization>,
) -> Result<HttpResponse, Refusal> {
    let (id, customer) = site.own(&request)?;
    site.customers.update(id, Customer { state: None, ..customer });
    if customer.state != Some(given.state) {
        return Err(Refusal::State);
    }
    let user = accounts.exchange(given.code).ok_or(Refusal::Code)?;
    // Against session fixation.
    site.customers.take(id);
    let (id, customer) = site.begin(Some(user));
    Ok(described(id, customer))
}

async fn sign_out(
    site: web::Data<ShopSite>,
    request: HttpRequest,
) -> Result<HttpResponse, Refusal> {
    let (id, _) = site.own(&request)?;
    site.customers.take(id);
    let (id, customer) = site.begin(None);
    Ok(described(id, customer))
}

async fn profile(site: web::Data<ShopSite>, request: HttpRequest) -> Result<HttpResponse, Refusal> {
    let user = site.user(&request)?;
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(json!({
        "customer": {
            "id": format!("shop-{}-4711", user.name()),
            "name": "Ada Example",
            "since": "2021-06-14",
            // No definition collects it: it stays between the platform and the applicant.
            "email": "ada.example@mail.test",
        },
        "points": 1280,
    })))
}

#[derive(Deserialize)]
struct OrdersQuery {
    #[serde(default)]
    cursor: String,
}

async fn list_orders(
    site: web::Data<ShopSite>,
    request: HttpRequest,
    query: web::Query<OrdersQuery>,
) -> Result<HttpResponse, Refusal> {
    let user = site.user(&request)?;
    let page = orders::page(user, &query.cursor).ok_or(Refusal::Cursor)?;
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(page))
}

/// Says whether somebody is signed in.
fn described(id: Uuid, customer: Customer) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((CACHE_CONTROL, "no-store"));
    with_cookies(id, customer, response.json(json!({ "signedIn": customer.user.is_some() })))
}

fn with_cookies(id: Uuid, customer: Customer, mut response: HttpResponse) -> HttpResponse {
    let session = Cookie::build(COOKIE, id.to_string()).http_only(true);
    let token = Cookie::build(CSRF_COOKIE, customer.csrf.to_string());
    for cookie in [session, token] {
        // A cookie of letters, digits and hyphens is always a valid header value.
        let _ = response.add_cookie(&cookie.path("/").same_site(SameSite::Lax).finish());
    }
    response
}

fn page(html: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .body(html)
}
