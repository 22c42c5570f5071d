//! Step-up authentication: a sensitive form is stored, the user re-authenticates, and the form is
//! submitted again.
//!
//! **Invariant:** the target after re-authentication is the one that the service stored with the
//! sign-in, never one that a request names.

use std::{future::Future, marker::PhantomData, pin::Pin};

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, web};
use domain::{reauthentication::SensitiveAction, secret::Secret};
use ports::driving::{
    FirstFactor, PasskeyChallenge, PendingForm, PortalError, ReauthenticationProof,
    SecondFactorProof, SignedInUser,
};

use crate::{
    Portal,
    authenticated::{AuthenticatedBeforeDuty, token, with_token},
    error::{PageError, redirect},
    forms::{CsrfForm, CsrfFormBeforeDuty, Fields},
    identity,
    message::{Message, message},
    methods::{reading, submitting},
    page::PortalPage,
    sign_in::HOME,
};

/// The page on which the user re-authenticates.
pub(crate) const HERE: &str = "/portal/confirm";
const CONTINUE: &str = "/portal/confirm/continue";
/// The field that names the stored form.
const RESUME: &str = "resume";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(show))
        .route(HERE, submitting(confirm))
        .route(CONTINUE, reading(resume));
}

/// The kind of change that a form or page makes.
pub(crate) trait ChangeScope {
    const CHANGE: SensitiveAction;
}

/// The user's own credentials.
pub(crate) struct Credentials;

impl ChangeScope for Credentials {
    const CHANGE: SensitiveAction = SensitiveAction::Credentials;
}

/// Settings that affect the whole team: keys, members, webhooks.
pub(crate) struct TeamSettings;

impl ChangeScope for TeamSettings {
    const CHANGE: SensitiveAction = SensitiveAction::Team;
}

/// The versions of platforms that new sessions run.
pub(crate) struct Publications;

impl ChangeScope for Publications {
    const CHANGE: SensitiveAction = SensitiveAction::Publication;
}

/// A form of a user who has re-authenticated. Otherwise the form is stored until they have.
pub(crate) struct Confirmed<A> {
    pub(crate) user: SignedInUser,
    pub(crate) fields: Fields,
    about: PhantomData<A>,
}

impl<A: ChangeScope + 'static> FromRequest for Confirmed<A> {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let submitted = CsrfFormBeforeDuty::from_request(&request, &mut payload).await?;
            let CsrfForm { user, fields } = submitted.0;
            require_second_factor_setup::<A>(&user)?;
            let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotFound)?;
            let fields = if fields.has(RESUME) {
                let id = fields.text(RESUME).to_owned();
                let pending = portal.confirmations.take_held_form(&user, id).await?;
                let pending = pending.filter(|pending| pending.path == request.path());
                let pending =
                    pending.and_then(|pending| pending.fields).ok_or(PageError::Forged)?;
                Fields::read(pending.as_bytes())
            } else {
                fields
            };
            if !is_confirmed::<A>(portal, &user) {
                let path = request.path().to_owned();
                portal.confirmations.hold_form(&user, path, Some(fields.serialized())).await?;
                return Err(PageError::Confirm);
            }
            Ok(Self { user, fields, about: PhantomData })
        })
    }
}

/// A page for a user who has re-authenticated. Otherwise they have to do so first.
pub(crate) struct ConfirmedPage<A>(pub(crate) SignedInUser, PhantomData<A>);

impl<A: ChangeScope + 'static> FromRequest for ConfirmedPage<A> {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let AuthenticatedBeforeDuty(user) = AuthenticatedBeforeDuty::extract(&request).await?;
            require_second_factor_setup::<A>(&user)?;
            let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotFound)?;
            if !is_confirmed::<A>(portal, &user) {
                portal.confirmations.hold_form(&user, request.path().to_owned(), None).await?;
                return Err(PageError::Confirm);
            }
            Ok(Self(user, PhantomData))
        })
    }
}

/// A user who has to set up a second factor may change only their own credentials until then.
fn require_second_factor_setup<A: ChangeScope>(user: &SignedInUser) -> Result<(), PageError> {
    let is_own = A::CHANGE == SensitiveAction::Credentials;
    if is_own || user.required_action.is_none() {
        Ok(())
    } else {
        Err(PageError::SecondFactorRequired)
    }
}

fn is_confirmed<A: ChangeScope>(portal: &Portal, user: &SignedInUser) -> bool {
    A::CHANGE.is_confirmed(user.authenticated, portal.clock.now())
}

/// Returns the purpose of the re-authentication, as the page states it.
fn purpose(pending: Option<&PendingForm>) -> Message {
    let path = pending.map_or("", |pending| pending.path.as_str());
    match path.split('/').nth(2) {
        Some("keys") => message("To change API keys"),
        Some("webhooks") => message("To change webhook endpoints"),
        Some("members") => message("To change team members"),
        Some("platforms" | "drafts") => message("To change what new sessions run"),
        Some("account") => message("To change your sign-in settings"),
        Some(_) | None => message("To continue"),
    }
}

/// Returns the re-authentication form. `provider_proof` is the encrypted proof that the identity
/// provider has authenticated the user; empty if it has not.
async fn form(
    portal: &Portal,
    user: &SignedInUser,
    provider_proof: &str,
) -> Result<PortalPage, PortalError> {
    let pending = portal.confirmations.held_form(user).await?;
    let (options, challenge) = match portal.passkeys.ask_passkey(user).await? {
        Some(PasskeyChallenge { options, sealed }) => (options, sealed.expose().to_owned()),
        None => (String::new(), String::new()),
    };
    Ok(PortalPage::of_team("confirm.html", message("Confirm your identity"), "", user)
        .with("purpose", purpose(pending.as_ref()))
        .with("provider", if user.is_by_provider() { identity::name(portal) } else { "" })
        .with("asked_there", provider_proof)
        .with("has_codes", user.has_codes)
        .with("has_second", user.has_second_factor())
        .with("options", options)
        .with("asked", challenge))
}

async fn show(
    portal: web::Data<Portal>,
    signed: AuthenticatedBeforeDuty,
) -> Result<HttpResponse, PageError> {
    Ok(form(&portal, &signed.0, "").await?.into_response())
}

/// Continues after the identity provider has authenticated the user: with the second factor, or at
/// once if they have none.
pub(crate) async fn provider_authenticated(
    portal: &Portal,
    user: &SignedInUser,
    request: &HttpRequest,
    provider_proof: Secret,
) -> Result<HttpResponse, PageError> {
    if user.has_second_factor() {
        return Ok(form(portal, user, provider_proof.expose()).await?.into_response());
    }
    let proof =
        ReauthenticationProof { first: FirstFactor::Provider(provider_proof), second: None };
    let new_token =
        portal.confirmations.reauthenticate(user, sign_in_token(request)?, proof).await?;
    Ok(with_token(redirect(CONTINUE), &new_token))
}

fn sign_in_token(request: &HttpRequest) -> Result<Secret, PageError> {
    token(request).ok_or(PageError::Forged)
}

async fn confirm(
    portal: web::Data<Portal>,
    request: HttpRequest,
    submitted: CsrfFormBeforeDuty,
) -> Result<HttpResponse, PageError> {
    let CsrfForm { user, fields } = submitted.0;
    let first = if user.is_by_provider() {
        FirstFactor::Provider(fields.secret("asked_there"))
    } else {
        FirstFactor::Password(fields.secret("password"))
    };
    let second = if fields.has("answer") {
        let answer = fields.text("answer").to_owned();
        Some(SecondFactorProof::Passkey { asked: fields.secret("asked"), answer })
    } else {
        Some(SecondFactorProof::Code(fields.text("code").to_owned())).filter(|_| fields.has("code"))
    };
    let proof = ReauthenticationProof { first, second };
    match portal.confirmations.reauthenticate(&user, sign_in_token(&request)?, proof).await {
        Ok(new_token) => Ok(with_token(redirect(CONTINUE), &new_token)),
        Err(
            error @ (PortalError::WrongPassword
            | PortalError::PasswordRanOut
            | PortalError::WrongCode
            | PortalError::Invalid(_)
            | PortalError::TooMany { .. }),
        ) => {
            let page = form(&portal, &user, fields.text("asked_there")).await?;
            Ok(page.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Continues with the stored request: a page directly, a form by a button or by the portal's
/// script.
async fn resume(
    portal: web::Data<Portal>,
    signed: AuthenticatedBeforeDuty,
) -> Result<HttpResponse, PageError> {
    let user = signed.0;
    if !is_confirmed::<Credentials>(&portal, &user) {
        return Ok(redirect(HERE));
    }
    let Some(pending) = portal.confirmations.held_form(&user).await? else {
        return Ok(redirect(HOME));
    };
    if pending.fields.is_none() {
        return Ok(redirect(&pending.path));
    }
    Ok(PortalPage::of_team("continue.html", message("Continue"), "", &user)
        .with("path", pending.path)
        .with("resume", pending.id)
        .into_response())
}
