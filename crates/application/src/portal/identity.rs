//! Signing in with what a provider of identities says.

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta};
use domain::{audit::AuditEvent, secret::Secret};
use ports::{
    account_store::{RequestOrigin, StoredUser},
    driving::{IdentityService, PortalError, SignInOutcome, SignedInUser},
    identity::{
        AuthorizationCallback, AuthorizationPrompt, Identity, IdentityError, IdentityProvider,
    },
    rate_limiter::Subject,
};

use super::{
    People,
    accounts::{FirstFactorKind, LIMIT_PER_ADDRESS, passed},
};

/// How long somebody may be away.
const AUTHORIZATION_TTL: TimeDelta = TimeDelta::minutes(10);
/// How far the provider's clock may be behind ours.
const CLOCKS: TimeDelta = TimeDelta::minutes(1);
const STATE_CONTEXT: &str = "portal.identity";
const CONFIRM: &str = "confirm.";

/// What the log knows, and what somebody is told.
fn unidentified(error: &IdentityError) -> PortalError {
    tracing::warn!(%error, "somebody could not be signed in");
    metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "refused").increment(1);
    let text = match error {
        IdentityError::Unreachable(_) => "who you are cannot be asked at the moment: try again",
        IdentityError::Refused(_) => "who you are could not be confirmed: try again",
        IdentityError::NoAddress => "your address was not confirmed there",
    };
    PortalError::Invalid(text.to_owned())
}

fn stranger() -> PortalError {
    let text = "nobody here is known by that: ask an owner of your team to invite you";
    PortalError::Invalid(text.to_owned())
}

/// Of one sign-in; no path of the portal begins like that.
fn confirming(visitor: &SignedInUser) -> String {
    format!("{CONFIRM}{}", visitor.sign_in)
}

impl People {
    /// Where a browser is sent, and what it keeps for when it comes back.
    async fn send_away(
        &self,
        what: &str,
        prompt: AuthorizationPrompt,
    ) -> Result<(String, Secret), PortalError> {
        let departure = self.identities()?.authorization_request(prompt).await;
        let departure = departure.map_err(|error| unidentified(&error))?;
        let until = (self.core.clock.now() + AUTHORIZATION_TTL).timestamp();
        let text = format!("{until} {what} {}", departure.kept.expose());
        let sealed = self.cipher.encrypt_text(STATE_CONTEXT, &text);
        let sealed = sealed.map_err(|_| PortalError::Invalid("try again".to_owned()))?;
        Ok((departure.url, Secret::new(URL_SAFE_NO_PAD.encode(sealed))))
    }

    fn identities(&self) -> Result<&dyn IdentityProvider, PortalError> {
        self.identities.as_deref().ok_or(PortalError::NotFound("provider"))
    }

    /// The person whom a provider knows, and only them: by its name for them, which stays theirs.
    /// By their address once, while nobody is known as them.
    async fn known(
        &self,
        identity: &Identity,
        from: &RequestOrigin,
    ) -> Result<StoredUser, PortalError> {
        if let Some(kept) = self.users.user_by_subject(&identity.subject).await? {
            return Ok(kept);
        }
        let kept = self.users.user_by_email(&identity.email).await?.ok_or_else(stranger)?;
        let issuer = |subject: &str| subject.split(' ').next().map(str::to_owned);
        let before = kept.subject.as_deref();
        // Another provider's name for them counts no more: there is one provider at a time.
        if before.is_some_and(|before| issuer(before) == issuer(&identity.subject)) {
            tracing::warn!(user.id = %kept.user.id, "the provider knows another person by that");
            return Err(stranger());
        }
        let now = self.core.clock.now();
        let deed =
            AuditEvent::new(now, kept.user.email.as_str(), "identity.bind", &identity.subject);
        self.audit.note(kept.user.team, &deed.from(from.address)).await?;
        let bound = self.users.bind_subject(kept.user.id, before, &identity.subject).await?;
        if bound { Ok(kept) } else { Err(stranger()) }
    }
}

#[async_trait]
impl IdentityService for People {
    fn provider(&self) -> Option<&str> {
        self.identities.as_deref().map(IdentityProvider::name)
    }

    async fn begin_sign_in(
        &self,
        next: String,
        from: RequestOrigin,
    ) -> Result<(String, Secret), PortalError> {
        self.charge_one(Subject::SignIns(from.address), LIMIT_PER_ADDRESS).await?;
        self.send_away(&next, AuthorizationPrompt::Any).await
    }

    async fn depart_to_confirm(
        &self,
        visitor: &SignedInUser,
    ) -> Result<(String, Secret), PortalError> {
        passed(visitor)?;
        if !visitor.is_by_provider() {
            return Err(PortalError::Forbidden);
        }
        let address = visitor.from.address;
        self.charge_one(Subject::SignIns(address), LIMIT_PER_ADDRESS).await?;
        self.send_away(&confirming(visitor), AuthorizationPrompt::Login).await
    }

    async fn complete_sign_in(
        &self,
        kept: Secret,
        arrival: AuthorizationCallback,
        from: RequestOrigin,
        (visitor, browsers): (Option<SignedInUser>, Secret),
    ) -> Result<SignInOutcome, PortalError> {
        let identities = self.identities()?;
        self.charge_one(Subject::SignIns(from.address), LIMIT_PER_ADDRESS).await?;
        let late = || PortalError::Invalid("that took too long: try again".to_owned());
        let sealed = URL_SAFE_NO_PAD.decode(kept.expose()).map_err(|_| late())?;
        let text = self.cipher.decrypt_text(STATE_CONTEXT, &sealed).map_err(|_| late())?;
        let mut parts = text.splitn(3, ' ');
        let (Some(until), Some(what), Some(kept)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(late());
        };
        let (now, until) = (self.core.clock.now(), until.parse().ok());
        let until = until.and_then(|until| DateTime::from_timestamp(until, 0));
        let until = until.filter(|until| now < *until).ok_or_else(late)?;
        let identity = identities.exchange_code(&Secret::new(kept.to_owned()), &arrival).await;
        let identity = identity.map_err(|error| unidentified(&error))?;
        if !what.starts_with(CONFIRM) {
            let person = self.known(&identity, &from).await?;
            let browser = self.browser_of(Some(person.user.id), &browsers).await?;
            let signed_in =
                self.start_sign_in(&person, from, FirstFactorKind::Provider, browser).await?;
            return Ok(SignInOutcome::SignedIn(signed_in, what.to_owned()));
        }
        let visitor = visitor.filter(|visitor| what == confirming(visitor)).ok_or_else(late)?;
        let kept = self.users.user(visitor.user).await?.ok_or_else(stranger)?;
        let same = kept.subject.as_deref() == Some(&identity.subject);
        let asked =
            identity.authenticated_at.is_some_and(|at| at >= until - AUTHORIZATION_TTL - CLOCKS);
        if !same || !asked {
            self.note_refusal(Some(&kept), "confirmation", &from);
            let text = "you were not asked there who you are: try again";
            return Err(PortalError::Invalid(text.to_owned()));
        }
        Ok(SignInOutcome::Asked(self.asked_anew(&visitor)?))
    }
}
