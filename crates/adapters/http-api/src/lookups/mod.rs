//! The lookups for partners, one file each.

pub(super) mod cache;
pub(super) mod channels;
pub(super) mod countries;
pub(super) mod error_codes;
pub(super) mod platforms;
pub(super) mod templates;

use actix_web::{Route, web};

use super::methods::{reading, wrong_method};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    let lookup = |path, route: Route| {
        web::resource(path).route(route).default_service(wrong_method("GET, HEAD"))
    };
    config
        .app_data(web::Data::new(cache::ResponseCache::default()))
        .service(lookup("/v1/partner/browser-platforms", reading().to(platforms::platforms)))
        .service(lookup(
            "/v1/partner/notification-platforms",
            reading().to(channels::notification_platforms),
        ))
        .service(lookup("/v1/partner/email-templates", reading().to(templates::email_templates)))
        .service(lookup("/v1/partner/supported-countries", reading().to(countries::countries)))
        .service(lookup("/v1/partner/error-codes", reading().to(error_codes::error_codes)));
}
