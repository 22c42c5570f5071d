//! The member's own account: password, second factor, and sign-ins.

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
    error::{PageError, redirect},
    forms::CsrfForm,
    message::message,
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
    passkeys,
    reauthentication::{Confirmed, ConfirmedPage, Credentials},
};

const HERE: &str = "/portal/account";
/// The page on which a member sets up a required second factor.
pub(crate) const DUTY: &str = "/portal/account/second-factor";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(show))
        .route("/portal/account/password", submitting(change_password))
        .route("/portal/account/second-factor", reading(offer))
        .route("/portal/account/second-factor", submitting(keep))
        .route("/portal/account/second-factor/drop", submitting(drop_factor))
        .route("/portal/account/sign-ins/{id}/end", submitting(end));
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
    fn of(sign_in: &SignIn, user: &SignedInUser) -> Self {
        Self {
            id: sign_in.id.to_string(),
            own: sign_in.id == user.sign_in,
            address: sign_in.from.address.to_string(),
            agent: sign_in.from.agent.clone(),
            since: sign_in.created_at.into(),
            seen: sign_in.seen_at.into(),
        }
    }
}

async fn page(portal: &Portal, user: &SignedInUser) -> Result<PortalPage, PortalError> {
    let sign_ins = portal.accounts.sign_ins(user).await?;
    let rows: Vec<_> = sign_ins.iter().map(|one| SignInListRow::of(one, user)).collect();
    let passkeys = portal.passkeys.passkeys(user).await?;
    let passkeys =
        passkeys.map(|all| all.iter().map(passkeys::PasskeyListRow::of).collect::<Vec<_>>());
    Ok(PortalPage::of_team("account.html", message("Account"), "account", user)
        .with("sign_ins", rows)
        .with("passkeys", passkeys)
        .with("has_codes", user.has_codes)
        .with("password_until", user.password_until.map(PageTime::from))
        .with("done", ""))
}

async fn show(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0).await?.into_response())
}

async fn change_password(
    portal: web::Data<Portal>,
    submitted: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let (mut user, new) = (submitted.user, submitted.fields.secret("new"));
    let shown = match portal.accounts.change_password(&user, new).await {
        Ok(()) => {
            user.password_until = None;
            let done = message("Password changed. You were signed out on all other devices.");
            page(&portal, &user).await?.with("done", done).into_response()
        }
        Err(error) => refused(&portal, &user, error).await?,
    };
    Ok(shown)
}

async fn drop_factor(
    portal: web::Data<Portal>,
    submitted: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    portal.accounts.disable_totp(&submitted.user).await?;
    Ok(redirect(HERE))
}

/// Renders the page again with the validation error.
async fn refused(
    portal: &Portal,
    user: &SignedInUser,
    error: PortalError,
) -> Result<HttpResponse, PortalError> {
    match error {
        PortalError::Password(_) => Ok(page(portal, user).await?.refused(&error)),
        PortalError::NotFound(_)
        | PortalError::InvalidLink
        | PortalError::Forbidden
        | PortalError::Unconfirmed
        | PortalError::WrongPassword
        | PortalError::PasswordRanOut
        | PortalError::WrongCode
        | PortalError::TooMany { .. }
        | PortalError::Invalid(_)
        | PortalError::Restarting
        | PortalError::Store(_) => Err(error),
    }
}

async fn offer(portal: web::Data<Portal>, signed: ConfirmedPage<Credentials>) -> HttpResponse {
    let user = signed.0;
    factor_page(&user, &portal.accounts.totp_setup(&user, None)).into_response()
}

fn factor_page(user: &SignedInUser, offer: &TotpSetup) -> PortalPage {
    // The secret is also shown as text, so a failure to draw the QR code is not an error.
    let drawn = QrCode::new(offer.url.expose()).map(|code| {
        let image = code.render::<svg::Color<'_>>().min_dimensions(220, 220).build();
        image.split_once("<svg").map_or(String::new(), |(_, rest)| format!("<svg{rest}"))
    });
    let drawn = minijinja::Value::from_safe_string(drawn.unwrap_or_default());
    PortalPage::of_team("factor.html", message("Set up two-factor authentication"), "account", user)
        .with("secret", offer.secret.expose())
        .with("picture", drawn)
        .with("offer", offer.sealed.expose())
        .with("needed", user.required_action.is_some())
}

async fn keep(
    portal: web::Data<Portal>,
    submitted: Confirmed<Credentials>,
) -> Result<HttpResponse, PageError> {
    let (user, fields) = (submitted.user, submitted.fields);
    let kept = portal.accounts.enable_totp(&user, fields.text("offer"), fields.text("code"));
    match kept.await {
        Ok(codes) => {
            let codes: Vec<_> = codes.iter().map(|code| code.expose().to_owned()).collect();
            let page =
                PortalPage::of_team("recovery.html", message("Recovery codes"), "account", &user);
            Ok(page.with("codes", codes).into_response())
        }
        Err(error @ (PortalError::WrongCode | PortalError::Invalid(_))) => {
            let before = Some(fields.text("offer"));
            let offer = portal.accounts.totp_setup(&user, before);
            Ok(factor_page(&user, &offer).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn end(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = id.parse().map_err(|_| PortalError::NotFound("sign-in"))?;
    portal.accounts.end_sign_in(&submitted.user, id).await?;
    Ok(redirect(HERE))
}
