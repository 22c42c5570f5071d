//! The service's own HTTP side over actix-web: the partner API and the embed page, with the portal
//! beside them.

mod attestations;
mod caller;
mod embed;
mod envelope;
mod error;
mod hash;
mod lookups;
mod mails;
mod measure;
mod methods;
mod middleware;
mod openapi;
mod prometheus;
mod query;
mod recordings;
mod refusals;
mod sessions;
mod stream;

use std::{sync::Arc, time::Duration};

use actix_web::{
    App, Error, HttpRequest, HttpServer,
    body::MessageBody,
    dev::{Server, ServiceFactory, ServiceRequest, ServiceResponse},
    middleware::from_fn,
    web,
};
use ports::{
    driving::{
        ApplicantService, Authenticator, LookupService, MailPreferenceService, ObserverService,
        Readiness, SessionService,
    },
    recording::SharedRecordings,
    refusals::RefusalLog,
};

pub use self::{
    caller::{TrustedProxies, address},
    prometheus::Metrics,
};

/// Bodies above this are refused.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long `/readyz` waits for what the service needs; it answers within 2 s whatever hangs.
const READY_TIMEOUT: Duration = Duration::from_millis(1500);
/// What pages for people are.
const HTML: &str = "text/html; charset=utf-8";

/// Adds the routes of other pages to the server.
pub type Pages = Arc<dyn Fn(&mut web::ServiceConfig)>;

/// What the handlers call.
#[derive(Clone)]
pub struct Services {
    pub gate: Arc<dyn Authenticator>,
    pub sessions: Arc<dyn SessionService>,
    pub lookups: Arc<dyn LookupService>,
    pub applicants: Arc<dyn ApplicantService>,
    pub watchers: Arc<dyn ObserverService>,
    pub mails: Arc<dyn MailPreferenceService>,
    /// Whether the service can serve; for `/readyz`.
    pub ready: Arc<dyn Readiness>,
    pub trusted_proxies: TrustedProxies,
    /// Whether the public address is https: browsers are told to keep to it.
    pub https: bool,
    /// Mounts further pages, such as the partner portal.
    pub pages: Option<Pages>,
    /// For links to films; none: they lead nowhere.
    pub films: Option<Arc<dyn SharedRecordings>>,
    pub refusals: Arc<dyn RefusalLog>,
    /// For `/metrics`; `None` where they are served elsewhere.
    pub metrics: Option<Metrics>,
}

/// The whole application.
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
        .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
        .wrap(from_fn(middleware::frame))
        // In one flat list: a scope inside a scope costs each request a look at each. What has no
        // pattern comes first, since it is told apart at a glance.
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
                    .route("/metrics", web::get().to(own_metrics));
            }
        })
        .configure(embed::routes)
        .configure(mails::routes)
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
        .configure(openapi::viewer)
        .default_service(methods::nothing_here())
}

async fn readyz(ready: web::Data<dyn Readiness>) -> actix_web::HttpResponse {
    // Detached: a statement must not be dropped half-way.
    let ready = actix_web::rt::spawn(async move { ready.ready().await });
    let in_time = tokio::time::timeout(READY_TIMEOUT, ready).await;
    if matches!(in_time, Ok(Ok(true))) {
        actix_web::HttpResponse::Ok().body("ready\n")
    } else {
        actix_web::HttpResponse::ServiceUnavailable().body("the database does not answer\n")
    }
}

/// `GET /metrics` alone, for an address that only the operator's scraper can reach.
///
/// # Errors
/// The socket cannot be served on.
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

/// `GET /metrics` beside everything else: for programs on this machine alone, and not for what a
/// proxy on it passes on.
async fn own_metrics(
    request: HttpRequest,
    gathered: web::Data<Metrics>,
) -> Result<actix_web::HttpResponse, error::ApiError> {
    let here = request.peer_addr().is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    let passed_on = ["forwarded", "x-forwarded-for", "via"]
        .iter()
        .any(|name| request.headers().contains_key(*name));
    if !here || passed_on {
        return Err(error::ApiError::NotFound);
    }
    Ok(metrics(gathered).await)
}

async fn metrics(gathered: web::Data<Metrics>) -> actix_web::HttpResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    actix_web::HttpResponse::Ok().content_type(kind).body(gathered.text())
}

/// Serves the application on a socket that is already bound.
///
/// `services` is called once in each worker's thread.
pub fn serve(
    listener: std::net::TcpListener,
    services: impl Fn() -> Services + Clone + Send + 'static,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || app(services()))
        .disable_signals()
        .shutdown_timeout(5)
        .client_request_timeout(std::time::Duration::from_secs(10))
        .listen(listener)?;
    Ok(server.run())
}

#[cfg(test)]
mod tests;
