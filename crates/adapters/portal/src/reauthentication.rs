//! Step-up authentication: a sensitive form is kept, the person confirms who they are, and the form
//! goes on where it was headed.
//!
//! **Invariant:** where somebody goes on to is what the service has kept with their sign-in, and
//! never what a request names.

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
    error::{PageError, see},
    forms::{CsrfForm, CsrfFormBeforeDuty, Fields},
    identity,
    page::PortalPage,
    sign_in::HOME,
};

/// Where somebody confirms who they are.
pub(crate) const HERE: &str = "/portal/confirm";
const CONTINUE: &str = "/portal/confirm/continue";
/// The field that names the form that was kept.
const RESUME: &str = "resume";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, web::get().to(show))
        .route(HERE, web::post().to(confirm))
        .route(CONTINUE, web::get().to(go_on));
}

/// What a form or a page is about.
pub(crate) trait About {
    const CHANGE: SensitiveAction;
}

/// What the visitor signs in with.
pub(crate) struct Credentials;

impl About for Credentials {
    const CHANGE: SensitiveAction = SensitiveAction::Credentials;
}

/// What the visitor's team trusts.
pub(crate) struct Team;

impl About for Team {
    const CHANGE: SensitiveAction = SensitiveAction::Team;
}

/// A form of somebody who has confirmed who they are. Of anybody else it is kept until they have.
pub(crate) struct Confirmed<A> {
    pub(crate) visitor: SignedInUser,
    pub(crate) fields: Fields,
    about: PhantomData<A>,
}

impl<A: About + 'static> FromRequest for Confirmed<A> {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let sent = CsrfFormBeforeDuty::from_request(&request, &mut payload).await?;
            let CsrfForm { visitor, fields } = sent.0;
            may_first::<A>(&visitor)?;
            let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotThere)?;
            let fields = if fields.has(RESUME) {
                let id = fields.text(RESUME).to_owned();
                let held = portal.confirmations.take_held_form(&visitor, id).await?;
                let held = held.filter(|held| held.path == request.path());
                let held = held.and_then(|held| held.fields).ok_or(PageError::Forged)?;
                Fields::read(held.as_bytes())
            } else {
                fields
            };
            if !is_confirmed::<A>(portal, &visitor) {
                let path = request.path().to_owned();
                portal.confirmations.hold_form(&visitor, path, Some(fields.written())).await?;
                return Err(PageError::Confirm);
            }
            Ok(Self { visitor, fields, about: PhantomData })
        })
    }
}

/// Somebody who has confirmed who they are, and sees a page. Anybody else confirms first.
pub(crate) struct ConfirmedPage<A>(pub(crate) SignedInUser, PhantomData<A>);

impl<A: About + 'static> FromRequest for ConfirmedPage<A> {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let AuthenticatedBeforeDuty(visitor) =
                AuthenticatedBeforeDuty::extract(&request).await?;
            may_first::<A>(&visitor)?;
            let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotThere)?;
            if !is_confirmed::<A>(portal, &visitor) {
                portal.confirmations.hold_form(&visitor, request.path().to_owned(), None).await?;
                return Err(PageError::Confirm);
            }
            Ok(Self(visitor, PhantomData))
        })
    }
}

/// Who has to set up a second factor first may change what they sign in with, and no more.
fn may_first<A: About>(visitor: &SignedInUser) -> Result<(), PageError> {
    let own = A::CHANGE == SensitiveAction::Credentials;
    if own || visitor.duty.is_none() { Ok(()) } else { Err(PageError::Duty) }
}

fn is_confirmed<A: About>(portal: &Portal, visitor: &SignedInUser) -> bool {
    A::CHANGE.is_confirmed(visitor.authenticated, portal.clock.now())
}

/// What is confirmed, as the page says it.
fn purpose(held: Option<&PendingForm>) -> &'static str {
    let path = held.map_or("", |held| held.path.as_str());
    match path.split('/').nth(2) {
        Some("keys") => "To change API keys",
        Some("webhooks") => "To change webhooks",
        Some("members") => "To change who is in your team",
        Some("account") => "To change how you sign in",
        Some(_) | None => "Before you go on",
    }
}

/// The form to confirm with. `asked`: that the provider of identities has asked the visitor, sealed.
async fn form(
    portal: &Portal,
    visitor: &SignedInUser,
    asked: &str,
) -> Result<PortalPage, PortalError> {
    let held = portal.confirmations.held_form(visitor).await?;
    let (options, challenge) = match portal.passkeys.ask_passkey(visitor).await? {
        Some(PasskeyChallenge { options, sealed }) => (options, sealed.expose().to_owned()),
        None => (String::new(), String::new()),
    };
    Ok(PortalPage::of_team("confirm.html", "Confirm it is you", "", visitor)
        .with("purpose", purpose(held.as_ref()))
        .with("provider", if visitor.is_by_provider() { identity::name(portal) } else { "" })
        .with("asked_there", asked)
        .with("has_codes", visitor.has_codes)
        .with("has_second", visitor.has_second_factor())
        .with("options", options)
        .with("asked", challenge))
}

async fn show(
    portal: web::Data<Portal>,
    signed: AuthenticatedBeforeDuty,
) -> Result<HttpResponse, PageError> {
    Ok(form(&portal, &signed.0, "").await?.shown())
}

/// Goes on after the provider of identities has asked the visitor: with the second factor, or at
/// once where they have none.
pub(crate) async fn asked_there(
    portal: &Portal,
    visitor: &SignedInUser,
    request: &HttpRequest,
    asked: Secret,
) -> Result<HttpResponse, PageError> {
    if visitor.has_second_factor() {
        return Ok(form(portal, visitor, asked.expose()).await?.shown());
    }
    let proof = ReauthenticationProof { first: FirstFactor::Provider(asked), second: None };
    let fresh = portal.confirmations.reauthenticate(visitor, own(request)?, proof).await?;
    Ok(with_token(see(CONTINUE), &fresh))
}

fn own(request: &HttpRequest) -> Result<Secret, PageError> {
    token(request).ok_or(PageError::Forged)
}

async fn confirm(
    portal: web::Data<Portal>,
    request: HttpRequest,
    sent: CsrfFormBeforeDuty,
) -> Result<HttpResponse, PageError> {
    let CsrfForm { visitor, fields } = sent.0;
    let first = if visitor.is_by_provider() {
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
    match portal.confirmations.reauthenticate(&visitor, own(&request)?, proof).await {
        Ok(fresh) => Ok(with_token(see(CONTINUE), &fresh)),
        Err(
            error @ (PortalError::WrongPassword
            | PortalError::PasswordRanOut
            | PortalError::WrongCode
            | PortalError::Invalid(_)
            | PortalError::TooMany { .. }),
        ) => {
            let page = form(&portal, &visitor, fields.text("asked_there")).await?;
            Ok(page.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

/// On to what was kept: a page at once, a form by one more press of a button, or by our script.
async fn go_on(
    portal: web::Data<Portal>,
    signed: AuthenticatedBeforeDuty,
) -> Result<HttpResponse, PageError> {
    let visitor = signed.0;
    if !is_confirmed::<Credentials>(&portal, &visitor) {
        return Ok(see(HERE));
    }
    let Some(held) = portal.confirmations.held_form(&visitor).await? else { return Ok(see(HOME)) };
    if held.fields.is_none() {
        return Ok(see(&held.path));
    }
    Ok(PortalPage::of_team("continue.html", "Continue", "", &visitor)
        .with("path", held.path)
        .with("resume", held.id)
        .shown())
}
