//! Passkeys: made in the own account, shown after the password. Browsers have them for scripts
//! alone.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::id::PasskeyId;
use ports::{
    driving::{PasskeyChallenge, PasskeyRegistered, PortalError, SignedInUser},
    passkeys::StoredPasskey,
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::{browsers, token, visitor, with_sign_in},
    error::{PageError, see},
    forms::PublicForm,
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, ConfirmedPage, Credentials},
    sign_in::{code_form, inside},
};

const NEW: &str = "/portal/account/passkeys/new";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(NEW, web::get().to(offer))
        .route(NEW, web::post().to(keep))
        .route("/portal/account/passkeys/{id}/drop", web::post().to(drop_one))
        .route("/portal/sign-in/passkey", web::post().to(show));
}

/// A passkey as its owner's page has it.
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

async fn page(
    portal: &Portal,
    visitor: &SignedInUser,
    name: &str,
) -> Result<PortalPage, PortalError> {
    let PasskeyChallenge { options, sealed } = portal.passkeys.offer_passkey(visitor).await?;
    Ok(PortalPage::of_team("passkey.html", "Add a passkey", "account", visitor)
        .with("name", name)
        .with("options", options)
        .with("asked", sealed.expose()))
}

async fn offer(
    portal: web::Data<Portal>,
    signed: ConfirmedPage<Credentials>,
) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0, "").await?.shown())
}

async fn keep(
    portal: web::Data<Portal>,
    sent: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let (visitor, fields) = (sent.visitor, sent.fields);
    let (name, answer) = (fields.text("name").to_owned(), fields.text("answer").to_owned());
    let kept = portal.passkeys.keep_passkey(&visitor, name, fields.secret("asked"), answer);
    match kept.await {
        Ok(codes) if codes.is_empty() => Ok(see("/portal/account")),
        Ok(codes) => {
            let codes: Vec<_> = codes.iter().map(|code| code.expose().to_owned()).collect();
            let page = PortalPage::of_team("recovery.html", "Recovery codes", "account", &visitor);
            Ok(page.with("codes", codes).shown())
        }
        Err(error @ PortalError::Invalid(_)) => {
            Ok(page(&portal, &visitor, fields.text("name")).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn drop_one(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let id: PasskeyId = id.parse().map_err(|_| PortalError::NotFound("passkey"))?;
    portal.passkeys.drop_passkey(&sent.visitor, id).await?;
    Ok(see("/portal/account"))
}

async fn show(
    portal: web::Data<Portal>,
    request: HttpRequest,
    sent: PublicForm,
) -> Result<HttpResponse, PageError> {
    let found = visitor(&request).await?.filter(|visitor| !visitor.passed);
    let (fields, Some(visitor), Some(token)) = (sent.0, found, token(&request)) else {
        return Ok(see("/portal/sign-in"));
    };
    let answered = PasskeyRegistered {
        asked: fields.secret("asked"),
        answer: fields.text("answer").to_owned(),
        browsers: browsers(&request),
    };
    let next = fields.text("next");
    match portal.passkeys.show_passkey(&visitor, token, answered).await {
        Ok(signed_in) => Ok(with_sign_in(see(&inside(next)), &signed_in)),
        Err(error @ (PortalError::Invalid(_) | PortalError::TooMany { .. })) => {
            Ok(code_form(&portal, &visitor, next).await?.refused(&error))
        }
        // The time for it has run out.
        Err(PortalError::Forbidden) => Ok(see("/portal/sign-in")),
        Err(error) => Err(error.into()),
    }
}
