//! Passkeys: registered on the account page, used after the password. Browsers offer them only to
//! scripts.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::id::PasskeyId;
use ports::{
    driving::{PasskeyChallenge, PasskeyRegistered, PortalError, SignedInUser},
    passkeys::StoredPasskey,
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::{browsers, signed_in_user, token, with_sign_in},
    error::{PageError, redirect},
    forms::PublicForm,
    message::message,
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, ConfirmedPage, Credentials},
    sign_in::{code_form, portal_path},
};

const NEW: &str = "/portal/account/passkeys/new";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(NEW, reading(offer))
        .route(NEW, submitting(keep))
        .route("/portal/account/passkeys/{id}/drop", submitting(drop_one))
        .route("/portal/sign-in/passkey", submitting(show));
}

/// A passkey, as its owner's account page shows it.
#[derive(Serialize)]
pub(crate) struct PasskeyListRow {
    id: String,
    name: String,
    since: PageTime,
    used: Option<PageTime>,
}

impl PasskeyListRow {
    pub(crate) fn of(passkey: &StoredPasskey) -> Self {
        Self {
            id: passkey.id.to_string(),
            name: passkey.name.clone(),
            since: passkey.created_at.into(),
            used: passkey.used_at.map(PageTime::from),
        }
    }
}

async fn page(portal: &Portal, user: &SignedInUser, name: &str) -> Result<PortalPage, PortalError> {
    let PasskeyChallenge { options, sealed } = portal.passkeys.offer_passkey(user).await?;
    Ok(PortalPage::of_team("passkey.html", message("Add a passkey"), "account", user)
        .with("name", name)
        .with("options", options)
        .with("asked", sealed.expose()))
}

async fn offer(
    portal: web::Data<Portal>,
    signed: ConfirmedPage<Credentials>,
) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0, "").await?.into_response())
}

async fn keep(
    portal: web::Data<Portal>,
    submitted: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let (user, fields) = (submitted.user, submitted.fields);
    let (name, answer) = (fields.text("name").to_owned(), fields.text("answer").to_owned());
    let kept = portal.passkeys.keep_passkey(&user, name, fields.secret("asked"), answer);
    match kept.await {
        Ok(codes) if codes.is_empty() => Ok(redirect("/portal/account")),
        Ok(codes) => {
            let codes: Vec<_> = codes.iter().map(|code| code.expose().to_owned()).collect();
            let page =
                PortalPage::of_team("recovery.html", message("Recovery codes"), "account", &user);
            Ok(page.with("codes", codes).into_response())
        }
        Err(error @ PortalError::Invalid(_)) => {
            Ok(page(&portal, &user, fields.text("name")).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn drop_one(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let id: PasskeyId = id.parse().map_err(|_| PortalError::NotFound("passkey"))?;
    portal.passkeys.drop_passkey(&submitted.user, id).await?;
    Ok(redirect("/portal/account"))
}

async fn show(
    portal: web::Data<Portal>,
    request: HttpRequest,
    submitted: PublicForm,
) -> Result<HttpResponse, PageError> {
    let found = signed_in_user(&request).await?.filter(|user| !user.passed);
    let (fields, Some(user), Some(token)) = (submitted.0, found, token(&request)) else {
        return Ok(redirect("/portal/sign-in"));
    };
    let answered = PasskeyRegistered {
        asked: fields.secret("asked"),
        answer: fields.text("answer").to_owned(),
        browsers: browsers(&request),
    };
    let next = fields.text("next");
    match portal.passkeys.show_passkey(&user, token, answered).await {
        Ok(signed_in) => Ok(with_sign_in(redirect(&portal_path(next)), &signed_in)),
        Err(error @ (PortalError::Invalid(_) | PortalError::TooMany { .. })) => {
            Ok(code_form(&portal, &user, next).await?.refused(&error))
        }
        // The sign-in has expired.
        Err(PortalError::Forbidden) => Ok(redirect("/portal/sign-in")),
        Err(error) => Err(error.into()),
    }
}
