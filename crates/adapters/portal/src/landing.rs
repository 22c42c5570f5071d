//! The page at `/`: what the service is, with links to the portal and the documentation.

use actix_web::{HttpResponse, web};

use crate::{message::message, methods::reading, page::PortalPage};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/", reading(show));
}

async fn show() -> HttpResponse {
    let title = message("Verify that applicants own their accounts");
    PortalPage::new("landing.html", title).with("here", "landing").into_response()
}
