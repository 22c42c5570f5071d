//! The partner portal: pages that are rendered on the server, work without scripts, and load
//! nothing from other origins.
//!
//! **Invariant:** a GET changes nothing. Every change requires a form of a page of the portal, with
//! the CSRF token of the signed-in user ([`forms`]).
//!
//! Texts are written in English and translated when a page is rendered ([`language`], [`message`],
//! [`translations`]).

mod accept_language;
mod account;
mod assets;
mod audit;
mod authenticated;
mod branding;
mod chart;
mod contacts;
mod deliveries;
mod documentation;
mod drafts;
mod elsewhere;
mod embedding;
mod error;
mod forms;
mod identity;
mod keys;
mod labels;
mod landing;
mod language;
mod members;
mod message;
mod methods;
mod overview;
mod page;
mod passkeys;
mod password;
mod platforms;
mod reauthentication;
mod session_export;
mod session_search;
mod sessions;
mod setup;
mod sign_in;
mod template_functions;
mod templates;
mod translations;
mod versions;
mod webhook_form;
mod webhooks;

use std::{net::IpAddr, sync::Arc};

use actix_web::{HttpRequest, web};
use domain::account::Permission;
use ports::{
    clock::Clock,
    driving::{
        AccountService, AuditService, AuthoringService, BrandingService, ContactService,
        EmbeddingService, IdentityService, KeyService, LinkService, LookupService, PasskeyService,
        ReauthenticationService, SignedInUser, TeamService, TeamSessionService, TeamWebhookService,
        TemplateService,
    },
    places::Places,
};

pub use self::elsewhere::{Elsewhere, Forward};

/// The services that the pages use.
#[derive(Clone)]
pub struct Portal {
    pub accounts: Arc<dyn AccountService>,
    pub keys: Arc<dyn KeyService>,
    pub sessions: Arc<dyn TeamSessionService>,
    pub lookups: Arc<dyn LookupService>,
    pub authoring: Arc<dyn AuthoringService>,
    pub places: Arc<dyn Places>,
    pub webhooks: Arc<dyn TeamWebhookService>,
    pub team: Arc<dyn TeamService>,
    pub links: Arc<dyn LinkService>,
    pub embedding: Arc<dyn EmbeddingService>,
    pub receivers: Arc<dyn ContactService>,
    pub templates: Arc<dyn TemplateService>,
    pub branding: Arc<dyn BrandingService>,
    pub audit: Arc<dyn AuditService>,
    pub passkeys: Arc<dyn PasskeyService>,
    pub identities: Arc<dyn IdentityService>,
    pub confirmations: Arc<dyn ReauthenticationService>,
    pub clock: Arc<dyn Clock>,
    /// Scheme, host and port of the deployment's public URL.
    pub origin: String,
}

/// Returns the signed-in author that a request is from; `None` if it is from nobody who may write
/// definitions at the moment.
pub async fn author(request: &HttpRequest) -> Option<SignedInUser> {
    let user = authenticated::signed_in_user(request).await.ok()??;
    user.require(Permission::Author).is_ok().then_some(user)
}

/// Determines the address of a request's client.
pub type Address = fn(&HttpRequest) -> IpAddr;

/// Adds to a server for other instances the pages that open and close studios.
pub fn studio_routes(portal: Portal, address: Address) -> impl FnOnce(&mut web::ServiceConfig) {
    move |config| {
        config
            .app_data(web::Data::new(portal))
            .app_data(web::Data::new(authenticated::ClientAddress(address)))
            .configure(drafts::studio_routes);
    }
}

/// Adds the pages to a server; `address` determines the clients' addresses. Without `elsewhere` all studios
/// are those of this process.
pub fn routes(
    portal: Portal,
    address: Address,
    elsewhere: Option<Elsewhere>,
) -> impl FnOnce(&mut web::ServiceConfig) {
    move |config| {
        if let Some(elsewhere) = elsewhere {
            config.app_data(web::Data::new(elsewhere));
        }
        config
            .app_data(web::Data::new(portal))
            .app_data(web::Data::new(authenticated::ClientAddress(address)))
            .configure(landing::routes)
            .configure(sign_in::routes)
            .configure(overview::routes)
            .configure(sessions::routes)
            .configure(platforms::routes)
            .configure(versions::routes)
            .configure(drafts::routes)
            .configure(keys::routes)
            .configure(webhooks::routes)
            .configure(deliveries::routes)
            .configure(embedding::routes)
            .configure(branding::routes)
            .configure(contacts::routes)
            .configure(templates::routes)
            .configure(members::routes)
            .configure(password::routes)
            .configure(account::routes)
            .configure(passkeys::routes)
            .configure(identity::routes)
            .configure(reauthentication::routes)
            .configure(audit::routes)
            .configure(language::routes)
            .configure(assets::routes)
            .route("/portal/{rest:.*}", methods::any(error::not_found));
    }
}
