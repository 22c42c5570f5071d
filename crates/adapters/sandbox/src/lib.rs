//! The sandbox platforms: web sites of fictitious account providers, served on the same sockets and
//! told apart by the host of a request.

mod accounts;
mod acme;
mod certificate;
mod library;
mod platform;
mod responses;
mod sessions;
mod shop;
#[cfg(test)]
mod tests;

use std::{io, net::TcpListener};

use actix_web::{App, HttpServer, dev::Server, guard, web};

use self::{accounts::Accounts, acme::AcmeSite, library::LibrarySite, shop::ShopSite};
pub use self::{
    certificate::SiteCertificate,
    platform::{SandboxError, SandboxPlatform},
};

/// The host name of the site of `acme-sandbox`, which the certificate is for.
pub const HOST: &str = "sandbox.localhost";
/// The host names under which the service's own browsers reach the sites.
pub const HOSTS: [&str; 4] = [HOST, shop::HOST, accounts::HOST, library::HOST];
const MAX_BODY_BYTES: usize = 16 * 1024;

/// The sites, with what each of them keeps.
#[derive(Clone)]
struct Sites {
    acme: web::Data<AcmeSite>,
    shop: web::Data<ShopSite>,
    accounts: web::Data<Accounts>,
    library: web::Data<LibrarySite>,
}

impl Sites {
    fn new() -> Self {
        Self {
            acme: web::Data::new(AcmeSite::default()),
            shop: web::Data::new(ShopSite::default()),
            accounts: web::Data::new(Accounts::default()),
            library: web::Data::new(LibrarySite::default()),
        }
    }

    fn routes(&self, config: &mut web::ServiceConfig) {
        config
            .app_data(web::FormConfig::default().limit(MAX_BODY_BYTES))
            .app_data(web::JsonConfig::default().limit(MAX_BODY_BYTES))
            .app_data(self.acme.clone())
            .app_data(self.shop.clone())
            .app_data(self.accounts.clone())
            .app_data(self.library.clone())
            .service(site(shop::HOST).configure(shop::routes))
            .service(site(accounts::HOST).configure(accounts::routes))
            .service(site(library::HOST).configure(library::routes))
            // Requests for every other host.
            .configure(acme::routes);
    }
}

/// Returns the scope of the requests for a host.
fn site(host: &'static str) -> actix_web::Scope {
    web::scope("").guard(guard::Host(host))
}

/// Serves the sites on two bound sockets: one for browsers, and one over TLS 1.3 for the attestor.
fn serve(
    listener: TcpListener,
    tls_listener: TcpListener,
    certificate: SiteCertificate,
) -> io::Result<Server> {
    let sites = Sites::new();
    let server = HttpServer::new(move || App::new().configure(|config| sites.routes(config)));
    let server = server.workers(1).disable_signals().shutdown_timeout(1).listen(listener)?;
    Ok(server.listen_rustls_0_23(tls_listener, certificate.config)?.run())
}
