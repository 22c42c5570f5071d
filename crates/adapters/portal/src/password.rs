//! Choosing a password by a link that was mailed, and asking for such a link.
//!
//! A GET of the link shows a form and changes nothing: what reads mails before people do may follow
//! it.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::{account::LinkPurpose, secret::Secret};
use ports::driving::{MailedLink, PortalError};
use serde::Deserialize;

use crate::{
    Portal, authenticated::request_origin, error::PageError, forms::PublicForm, page::PortalPage,
    sign_in,
};

const LONGEST_TOKEN: usize = 120;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/forgot", web::get().to(ask))
        .route("/portal/forgot", web::post().to(asked))
        .route("/portal/password", web::get().to(show))
        .route("/portal/password", web::post().to(choose));
}

async fn ask() -> HttpResponse {
    forgot("", false).shown()
}

fn forgot(email: &str, done: bool) -> PortalPage {
    let email: String = email.chars().take(300).collect();
    PortalPage::new("forgot.html", "A new password").with("email", email).with("done", done)
}

async fn asked(
    portal: web::Data<Portal>,
    request: HttpRequest,
    sent: PublicForm,
) -> Result<HttpResponse, PageError> {
    let email: String = sent.0.text("email").chars().take(300).collect();
    match portal.links.forgot_password(email.clone(), request_origin(&request)).await {
        Ok(()) => Ok(forgot(&email, true).shown()),
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
    let absent = PortalError::NotFound("link, or it was used, or has run out");
    if sane { Ok(Secret::new(text.to_owned())) } else { Err(absent) }
}

async fn show(
    portal: web::Data<Portal>,
    link: web::Query<Link>,
) -> Result<HttpResponse, PageError> {
    let token = token(&link.link)?;
    let whose = portal.links.mailed_link(&token).await?;
    Ok(form(&whose, &token).shown())
}

fn form(whose: &MailedLink, token: &Secret) -> PortalPage {
    let title = match whose.purpose {
        LinkPurpose::Invitation => "Welcome",
        LinkPurpose::Reset => "A new password",
    };
    PortalPage::new("choose.html", title).with("email", &whose.email).with("link", token.expose())
}

async fn choose(
    portal: web::Data<Portal>,
    request: HttpRequest,
    sent: PublicForm,
) -> Result<HttpResponse, PageError> {
    let token = token(sent.0.text("link"))?;
    let whose = portal.links.mailed_link(&token).await?;
    match portal.links.choose_password(&token, sent.0.secret("new"), request_origin(&request)).await
    {
        Ok(()) => Ok(sign_in::form(&portal, "", &whose.email)
            .with("done", "Your password was chosen: sign in with it.")
            .shown()),
        Err(error @ (PortalError::Password(_) | PortalError::TooMany { .. })) => {
            Ok(form(&whose, &token).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}
