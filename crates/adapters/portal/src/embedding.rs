//! The origins that may embed the team's sessions.

use actix_web::{HttpResponse, web};
use domain::frame_ancestors::FrameAncestor;
use ports::driving::{PortalError, SignedInUser};

use crate::{
    Portal,
    authenticated::Authenticated,
    error::PageError,
    forms::CsrfForm,
    message::message,
    methods::{reading, submitting},
    page::PortalPage,
};

const HERE: &str = "/portal/embedding";
/// Larger than all origins that a team may have.
const LONGEST: usize = 20_000;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route(HERE, reading(show)).route(HERE, submitting(save));
}

fn page(user: &SignedInUser, origins: &str) -> PortalPage {
    PortalPage::of_team("embedding.html", message("Embedding"), "embedding", user)
        .with("origins", origins)
        .with("done", "")
}

async fn show(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    let origins = portal.embedding.embed_origins(&signed.0).await?;
    let lines: Vec<_> = origins.iter().map(ToString::to_string).collect();
    Ok(page(&signed.0, &lines.join("\n")).into_response())
}

async fn save(portal: web::Data<Portal>, submitted: CsrfForm) -> Result<HttpResponse, PageError> {
    let text: String = submitted.fields.text("origins").chars().take(LONGEST).collect();
    let read: Result<Vec<FrameAncestor>, _> = text.split_whitespace().map(str::parse).collect();
    let saved = match read {
        Ok(origins) => portal.embedding.set_embed_origins(&submitted.user, origins).await,
        Err(error) => Err(PortalError::Invalid(error.to_string())),
    };
    match saved {
        Ok(()) => {
            let done = message("Allowed origins saved.");
            Ok(page(&submitted.user, &text).with("done", done).into_response())
        }
        Err(error @ PortalError::Invalid(_)) => Ok(page(&submitted.user, &text).refused(&error)),
        Err(error) => Err(error.into()),
    }
}
