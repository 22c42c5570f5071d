//! The page at `/`: what the service is, with links to the portal and the documentation.

use actix_web::{HttpResponse, web};

use crate::{methods::reading, page::PortalPage};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/", reading().to(show));
}

async fn show() -> HttpResponse {
    PortalPage::new("landing.html", "Verify that applicants own their accounts")
        .with("here", "landing")
        .into_response()
}
