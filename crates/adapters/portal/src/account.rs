//! Somebody's own account: password, second factor, and where they are signed in.

use actix_web::{HttpResponse, web};
use ports::{
    account_store::SignIn,
    driving::{PortalError, SignedInUser, TotpSetup},
};
use qrcode::{QrCode, render::svg};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::{PageError, see},
    forms::CsrfForm,
    page::{PageTime, PortalPage},
    passkeys,
    reauthentication::{Confirmed, ConfirmedPage, Credentials},
};

const HERE: &str = "/portal/account";
/// Where somebody sets up a second factor who has to have one.
pub(crate) const DUTY: &str = "/portal/account/second-factor";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, web::get().to(show))
        .route("/portal/account/password", web::post().to(change_password))
        .route("/portal/account/second-factor", web::get().to(offer))
        .route("/portal/account/second-factor", web::post().to(keep))
        .route("/portal/account/second-factor/drop", web::post().to(drop_factor))
        .route("/portal/account/sign-ins/{id}/end", web::post().to(end));
}

#[derive(Serialize)]
struct SignInListRow {
    id: String,
    own: bool,
    address: String,
    agent: String,
    since: PageTime,
    seen: PageTime,
}

impl SignInListRow {
    fn of(sign_in: &SignIn, visitor: &SignedInUser) -> Self {
        Self {
            id: sign_in.id.to_string(),
            own: sign_in.id == visitor.sign_in,
            address: sign_in.from.address.to_string(),
            agent: sign_in.from.agent.clone(),
            since: sign_in.created_at.into(),
            seen: sign_in.seen_at.into(),
        }
    }
}

async fn page(portal: &Portal, visitor: &SignedInUser) -> Result<PortalPage, PortalError> {
    let sign_ins = portal.accounts.sign_ins(visitor).await?;
    let rows: Vec<_> = sign_ins.iter().map(|one| SignInListRow::of(one, visitor)).collect();
    let passkeys = portal.passkeys.passkeys(visitor).await?;
    let passkeys =
        passkeys.map(|all| all.iter().map(passkeys::PasskeyListRow::of).collect::<Vec<_>>());
    Ok(PortalPage::of_team("account.html", "Your account", "account", visitor)
        .with("sign_ins", rows)
        .with("passkeys", passkeys)
        .with("has_codes", visitor.has_codes)
        .with("password_until", visitor.password_until.map(PageTime::from))
        .with("done", ""))
}

async fn show(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0).await?.shown())
}

async fn change_password(
    portal: web::Data<Portal>,
    sent: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let (mut visitor, new) = (sent.visitor, sent.fields.secret("new"));
    let shown = match portal.accounts.change_password(&visitor, new).await {
        Ok(()) => {
            visitor.password_until = None;
            let done = "Your password was changed. You were signed out everywhere else.";
            page(&portal, &visitor).await?.with("done", done).shown()
        }
        Err(error) => refused(&portal, &visitor, error).await?,
    };
    Ok(shown)
}

async fn drop_factor(
    portal: web::Data<Portal>,
    sent: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    portal.accounts.disable_totp(&sent.visitor).await?;
    Ok(see(HERE))
}

/// The page again, with what was wrong with what was entered.
async fn refused(
    portal: &Portal,
    visitor: &SignedInUser,
    error: PortalError,
) -> Result<HttpResponse, PortalError> {
    match error {
        PortalError::Password(_) => Ok(page(portal, visitor).await?.refused(&error)),
        PortalError::NotFound(_)
        | PortalError::Forbidden
        | PortalError::Unconfirmed
        | PortalError::WrongPassword
        | PortalError::PasswordRanOut
        | PortalError::WrongCode
        | PortalError::TooMany { .. }
        | PortalError::Invalid(_)
        | PortalError::Store(_) => Err(error),
    }
}

async fn offer(portal: web::Data<Portal>, signed: ConfirmedPage<Credentials>) -> HttpResponse {
    let visitor = signed.0;
    factor_page(&visitor, &portal.accounts.totp_setup(&visitor, None)).shown()
}

fn factor_page(visitor: &SignedInUser, offer: &TotpSetup) -> PortalPage {
    // What cannot be drawn can be typed.
    let drawn = QrCode::new(offer.url.expose()).map(|code| {
        let image = code.render::<svg::Color<'_>>().min_dimensions(220, 220).build();
        image.split_once("<svg").map_or(String::new(), |(_, rest)| format!("<svg{rest}"))
    });
    let drawn = minijinja::Value::from_safe_string(drawn.unwrap_or_default());
    PortalPage::of_team("factor.html", "One-time codes", "account", visitor)
        .with("secret", offer.secret.expose())
        .with("picture", drawn)
        .with("offer", offer.sealed.expose())
        .with("needed", visitor.duty.is_some())
}

async fn keep(
    portal: web::Data<Portal>,
    sent: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let (visitor, fields) = (sent.visitor, sent.fields);
    let kept = portal.accounts.enable_totp(&visitor, fields.text("offer"), fields.text("code"));
    match kept.await {
        Ok(codes) => {
            let codes: Vec<_> = codes.iter().map(|code| code.expose().to_owned()).collect();
            let page = PortalPage::of_team("recovery.html", "Recovery codes", "account", &visitor);
            Ok(page.with("codes", codes).shown())
        }
        Err(error @ (PortalError::WrongCode | PortalError::Invalid(_))) => {
            let before = Some(fields.text("offer"));
            let offer = portal.accounts.totp_setup(&visitor, before);
            Ok(factor_page(&visitor, &offer).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn end(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = id.parse().map_err(|_| PortalError::NotFound("sign-in"))?;
    portal.accounts.end_sign_in(&sent.visitor, id).await?;
    Ok(see(HERE))
}
