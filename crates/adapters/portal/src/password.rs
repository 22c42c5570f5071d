//! Choosing a password through a mailed link, and requesting such a link.
//!
//! A GET of the link shows a form and changes nothing, since mail scanners may follow it.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::{account::LinkPurpose, secret::Secret};
use ports::driving::{MailedLink, PortalError};
use serde::Deserialize;

use crate::{
    Portal,
    authenticated::request_origin,
    error::PageError,
    forms::PublicForm,
    message::message,
    methods::{reading, submitting},
    page::PortalPage,
    sign_in,
};

const LONGEST_TOKEN: usize = 120;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/forgot", reading(ask))
        .route("/portal/forgot", submitting(asked))
        .route("/portal/password", reading(show))
        .route("/portal/password", submitting(choose));
}

async fn ask() -> HttpResponse {
    forgot("", false).into_response()
}

fn forgot(email: &str, done: bool) -> PortalPage {
    let email: String = email.chars().take(300).collect();
    PortalPage::new("forgot.html", message("Reset your password"))
        .with("email", email)
        .with("done", done)
}

async fn asked(
    portal: web::Data<Portal>,
    request: HttpRequest,
    submitted: PublicForm,
) -> Result<HttpResponse, PageError> {
    let email: String = submitted.0.text("email").chars().take(300).collect();
    match portal.links.forgot_password(email.clone(), request_origin(&request)).await {
        Ok(()) => Ok(forgot(&email, true).into_response()),
        Err(error @ PortalError::TooMany { .. }) => Ok(forgot(&email, false).refused(&error)),
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize)]
struct Link {
    #[serde(default)]
    link: String,
}

fn token(text: &str) -> Result<Secret, PortalError> {
    let sane = text.len() <= LONGEST_TOKEN;
    if sane { Ok(Secret::new(text.to_owned())) } else { Err(PortalError::InvalidLink) }
}

async fn show(
    portal: web::Data<Portal>,
    link: web::Query<Link>,
) -> Result<HttpResponse, PageError> {
    let token = token(&link.link)?;
    let whose = portal.links.mailed_link(&token).await?;
    Ok(form(&whose, &token).into_response())
}

fn form(whose: &MailedLink, token: &Secret) -> PortalPage {
    let title = match whose.purpose {
        LinkPurpose::Invitation => message("Welcome to Avouch"),
        LinkPurpose::Reset => message("Reset your password"),
    };
    PortalPage::new("choose.html", title).with("email", &whose.email).with("link", token.expose())
}

async fn choose(
    portal: web::Data<Portal>,
    request: HttpRequest,
    submitted: PublicForm,
) -> Result<HttpResponse, PageError> {
    let token = token(submitted.0.text("link"))?;
    let whose = portal.links.mailed_link(&token).await?;
    match portal
        .links
        .choose_password(&token, submitted.0.secret("new"), request_origin(&request))
        .await
    {
        Ok(()) => Ok(sign_in::form(&portal, "", &whose.email)
            .with("done", message("Password set. Sign in to continue."))
            .into_response()),
        Err(error @ (PortalError::Password(_) | PortalError::TooMany { .. })) => {
            Ok(form(&whose, &token).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}
