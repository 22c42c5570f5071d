//! The HTTP server (actix-web): the partner API, the embed page, and routes of other pages such as
//! the portal.

mod attestations;
mod caller;
mod diagnostic;
mod docs;
mod embed;
mod envelope;
mod error;
mod failure_code;
mod forwarding;
mod hash;
mod icons;
mod lookups;
mod mails;
mod measure;
mod methods;
mod metric_list;
mod middleware;
mod openapi;
mod prometheus;
mod query;
mod recordings;
mod refusals;
mod request_spans;
mod sessions;
mod stream;

use std::{rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    App, Error, HttpRequest, HttpServer,
    body::MessageBody,
    dev::{Server, ServiceFactory, ServiceRequest, ServiceResponse},
    middleware::from_fn,
    web,
};
use domain::egress::Networks;
use ports::{
    driving::{
        ApplicantService, Authenticator, LookupService, MailPreferenceService, ObserverService,
        Readiness, SessionService, SocketRouter, StudioRouter,
    },
    instances::SocketKind,
    recording::SharedRecordings,
    refusals::RefusalLog,
};

pub use self::{
    caller::{TrustedProxies, address},
    diagnostic::AddressDiagnostic,
    forwarding::forward,
    prometheus::Metrics,
    request_spans::RequestSpans,
};

/// The maximum size of a body; larger ones are refused.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The timeout of the readiness check, so that `/readyz` answers within 2 s even if a dependency
/// hangs.
const READY_TIMEOUT: Duration = Duration::from_millis(1500);
/// The media type of HTML pages.
const HTML: &str = "text/html; charset=utf-8";

/// Adds the routes of other pages to the server.
pub type Pages = Arc<dyn Fn(&mut web::ServiceConfig) + Send + Sync>;

/// The services that the handlers call.
#[derive(Clone)]
pub struct Services {
    pub gate: Arc<dyn Authenticator>,
    pub sessions: Arc<dyn SessionService>,
    pub lookups: Arc<dyn LookupService>,
    pub applicants: Arc<dyn ApplicantService>,
    pub watchers: Arc<dyn ObserverService>,
    pub mails: Arc<dyn MailPreferenceService>,
    /// The readiness check of `/readyz`.
    pub ready: Arc<dyn Readiness>,
    pub trusted_proxies: TrustedProxies,
    /// The base URL of the service, without a trailing slash.
    pub public_url: String,
    /// Whether the public URL is https; if so, responses have `Strict-Transport-Security`.
    pub https: bool,
    /// Adds further routes, such as the partner portal.
    pub pages: Option<Pages>,
    /// Recordings for signed links; without it there is no route for them.
    pub films: Option<Arc<dyn SharedRecordings>>,
    pub refusals: Arc<dyn RefusalLog>,
    /// Finds the instances that serve sessions; without it, this instance serves all of them.
    pub router: Option<Arc<dyn SocketRouter>>,
    /// Finds the instances that have the studios of drafts, which serve the pages of their sessions.
    pub studios: Option<Arc<dyn StudioRouter>>,
    /// The metrics of `/metrics`; `None` if they are served elsewhere.
    pub metrics: Option<Metrics>,
    /// Records the spans of partners' requests; `None` to record none.
    pub spans: Option<RequestSpans>,
}

/// Returns the complete application.
pub fn app(
    services: Services,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    App::new()
        .app_data(web::Data::from(services.gate))
        .app_data(web::Data::from(services.sessions))
        .app_data(web::Data::from(services.lookups))
        .app_data(web::Data::from(services.applicants))
        .app_data(web::Data::from(services.watchers))
        .app_data(web::Data::from(services.mails))
        .app_data(web::Data::from(services.ready))
        .app_data(web::Data::from(services.refusals))
        .app_data(services.trusted_proxies)
        .app_data(middleware::Https(services.https))
        .app_data(Rc::new(error::ErrorBodies::new(&services.public_url)))
        .app_data(web::Data::new(icons::PublicUrl(services.public_url)))
        .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
        .wrap(from_fn(middleware::respond))
        // Routes are in one flat list, since the router examines each nested scope for every
        // request. Routes without a pattern come first, since they are the cheapest to compare.
        .configure(lookups::routes)
        .configure(sessions::routes)
        .configure(attestations::routes)
        .route("/v1/openapi.json", openapi::served())
        .route("/healthz", web::get().to(async || "ok\n"))
        .route("/readyz", web::get().to(readyz))
        .configure(|config| {
            if let Some(gathered) = services.metrics {
                config
                    .app_data(web::Data::new(gathered))
                    .route("/metrics", web::get().to(local_metrics));
            }
        })
        .configure(|config| {
            if let Some(spans) = services.spans {
                config.app_data(spans);
            }
        })
        .configure(|config| {
            if let Some(router) = services.router {
                config.app_data(web::Data::from(router));
            }
            if let Some(studios) = services.studios {
                config.app_data(web::Data::from(studios));
            }
        })
        .configure(embed::routes)
        .configure(mails::routes)
        .configure(icons::routes)
        .configure(|config| {
            if let Some(pages) = services.pages {
                pages(config);
            }
        })
        .configure(|config| {
            if let Some(films) = services.films {
                config.app_data(web::Data::from(films)).configure(recordings::routes);
            }
        })
        .configure(docs::routes)
        .default_service(methods::unknown_path())
}

async fn readyz(ready: web::Data<dyn Readiness>) -> actix_web::HttpResponse {
    // Runs in a task of its own, since a database statement must not be dropped while it runs.
    let ready = actix_web::rt::spawn(async move { ready.ready().await });
    let result = tokio::time::timeout(READY_TIMEOUT, ready).await;
    if matches!(result, Ok(Ok(true))) {
        actix_web::HttpResponse::Ok().body("ready\n")
    } else {
        actix_web::HttpResponse::ServiceUnavailable().body("the database does not answer\n")
    }
}

/// Serves only `GET /metrics`, on an address that only the operator's scraper can reach.
///
/// # Errors
/// The server cannot listen on the socket.
pub fn serve_metrics(
    listener: std::net::TcpListener,
    gathered: Metrics,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(gathered.clone()))
            .route("/metrics", web::get().to(metrics))
    });
    Ok(server.workers(1).disable_signals().shutdown_timeout(1).listen(listener)?.run())
}

/// Serves `GET /metrics` on the main address, only for programs on the same machine, and not for
/// requests that a proxy forwarded.
async fn local_metrics(
    request: HttpRequest,
    gathered: web::Data<Metrics>,
) -> Result<actix_web::HttpResponse, error::ApiError> {
    let is_local = request.peer_addr().is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    let is_forwarded = ["forwarded", "x-forwarded-for", "via"]
        .iter()
        .any(|name| request.headers().contains_key(*name));
    if !is_local || is_forwarded {
        return Err(error::ApiError::NotFound);
    }
    Ok(metrics(gathered).await)
}

async fn metrics(gathered: web::Data<Metrics>) -> actix_web::HttpResponse {
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    actix_web::HttpResponse::Ok().content_type(content_type).body(gathered.text())
}

/// How long a connection without a request stays open (RFC 9112, section 9.3). Longer than HTTP clients
/// and load balancers keep an idle connection (mostly 4 to 90 s), so that they close it: a server that
/// closes first may do so while a request is on its way, which the client sees as a failed request.
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(120);

/// How many seconds a server answers requests in flight when the process stops. After a drain no socket of a
/// session is open any more; without one, sockets hold the server up for this time.
const SHUTDOWN_SECONDS: u64 = 5;

/// Serves the application on a bound socket.
///
/// `services` is called once in the thread of each worker.
pub fn serve(
    listener: std::net::TcpListener,
    services: impl Fn() -> Services + Clone + Send + 'static,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || app(services()))
        .disable_signals()
        .shutdown_timeout(SHUTDOWN_SECONDS)
        .client_request_timeout(std::time::Duration::from_secs(10))
        .keep_alive(KEEP_ALIVE)
        .listen(listener)?;
    Ok(server.run())
}

/// What other instances call.
#[derive(Clone)]
pub struct InstanceServices {
    pub applicants: Arc<dyn ApplicantService>,
    pub watchers: Arc<dyn ObserverService>,
    pub refusals: Arc<dyn RefusalLog>,
    /// Adds the pages for which other instances forward requests. They must not forward them again.
    pub pages: Pages,
}

/// Serves other instances: the sockets of sessions, which they relay, and pages, for which they forward
/// requests. Their certificates are verified, so what they say of the addresses of their clients is
/// believed; who is signed in is determined here.
///
/// # Errors
/// The server cannot listen on the socket.
pub fn serve_instances(
    listener: std::net::TcpListener,
    tls: rustls::ServerConfig,
    services: InstanceServices,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || {
        let services = services.clone();
        App::new()
            .app_data(web::Data::from(services.applicants))
            .app_data(web::Data::from(services.watchers))
            .app_data(web::Data::from(services.refusals))
            .app_data(TrustedProxies(Networks::all()))
            .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
            .wrap(from_fn(middleware::complete))
            .route(&SocketKind::Applicant.path("{id}"), web::get().to(stream::open))
            .route(&SocketKind::Observer.path("{id}"), web::get().to(stream::observer::open))
            .configure(embed::page_routes)
            .configure(|config| {
                (services.pages)(config);
            })
    });
    let server = server.disable_signals().shutdown_timeout(SHUTDOWN_SECONDS);
    Ok(server.listen_rustls_0_23(listener, tls)?.run())
}

#[cfg(test)]
mod tests;
