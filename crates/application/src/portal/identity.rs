//! Signing in with what a provider of identities says.

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta};
use domain::{audit::Deed, secret::Secret};
use ports::{
    account_store::{KeptUser, Whence},
    driving::{Arrived, IdentityService, PortalError, Visitor},
    identity::{Arrival, Identity, IdentityProvider, Prompt, Unidentified},
    rate_limiter::Subject,
};

use super::{
    People,
    accounts::{By, FROM_AN_ADDRESS, passed},
};

/// How long somebody may be away.
const AWAY: TimeDelta = TimeDelta::minutes(10);
/// How far the provider's clock may be behind ours.
const CLOCKS: TimeDelta = TimeDelta::minutes(1);
const PLACE: &str = "portal.identity";
const CONFIRM: &str = "confirm.";

/// What the log knows, and what somebody is told.
fn unidentified(error: &Unidentified) -> PortalError {
    tracing::warn!(%error, "somebody could not be signed in");
    metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "refused").increment(1);
    let text = match error {
        Unidentified::Unreachable(_) => "who you are cannot be asked at the moment: try again",
        Unidentified::Refused(_) => "who you are could not be confirmed: try again",
        Unidentified::NoAddress => "your address was not confirmed there",
    };
    PortalError::Invalid(text.to_owned())
}

fn stranger() -> PortalError {
    let text = "nobody here is known by that: ask an owner of your team to invite you";
    PortalError::Invalid(text.to_owned())
}

/// Of one sign-in; no path of the portal begins like that.
fn confirming(visitor: &Visitor) -> String {
    format!("{CONFIRM}{}", visitor.sign_in)
}

impl People {
    /// Where a browser is sent, and what it keeps for when it comes back.
    async fn send_away(&self, what: &str, prompt: Prompt) -> Result<(String, Secret), PortalError> {
        let departure = self.identities()?.depart(prompt).await;
        let departure = departure.map_err(|error| unidentified(&error))?;
        let until = (self.core.clock.now() + AWAY).timestamp();
        let text = format!("{until} {what} {}", departure.kept.expose());
        let sealed = self.cipher.encrypt_text(PLACE, &text);
        let sealed = sealed.map_err(|_| PortalError::Invalid("try again".to_owned()))?;
        Ok((departure.url, Secret::new(URL_SAFE_NO_PAD.encode(sealed))))
    }

    fn identities(&self) -> Result<&dyn IdentityProvider, PortalError> {
        self.identities.as_deref().ok_or(PortalError::NotFound("provider"))
    }

    /// The person whom a provider knows, and only them: by its name for them, which stays theirs.
    /// By their address once, while nobody is known as them.
    async fn known(&self, identity: &Identity, from: &Whence) -> Result<KeptUser, PortalError> {
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
        let deed = Deed::new(now, kept.user.email.as_str(), "identity.bind", &identity.subject);
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

    async fn depart(&self, next: String, from: Whence) -> Result<(String, Secret), PortalError> {
        self.charge_one(Subject::SignIns(from.address), FROM_AN_ADDRESS).await?;
        self.send_away(&next, Prompt::Any).await
    }

    async fn depart_to_confirm(&self, visitor: &Visitor) -> Result<(String, Secret), PortalError> {
        passed(visitor)?;
        if !visitor.is_by_provider() {
            return Err(PortalError::Forbidden);
        }
        let address = visitor.from.address;
        self.charge_one(Subject::SignIns(address), FROM_AN_ADDRESS).await?;
        self.send_away(&confirming(visitor), Prompt::Login).await
    }

    async fn arrive(
        &self,
        kept: Secret,
        arrival: Arrival,
        from: Whence,
        (visitor, browsers): (Option<Visitor>, Secret),
    ) -> Result<Arrived, PortalError> {
        let identities = self.identities()?;
        self.charge_one(Subject::SignIns(from.address), FROM_AN_ADDRESS).await?;
        let late = || PortalError::Invalid("that took too long: try again".to_owned());
        let sealed = URL_SAFE_NO_PAD.decode(kept.expose()).map_err(|_| late())?;
        let text = self.cipher.decrypt_text(PLACE, &sealed).map_err(|_| late())?;
        let mut parts = text.splitn(3, ' ');
        let (Some(until), Some(what), Some(kept)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(late());
        };
        let (now, until) = (self.core.clock.now(), until.parse().ok());
        let until = until.and_then(|until| DateTime::from_timestamp(until, 0));
        let until = until.filter(|until| now < *until).ok_or_else(late)?;
        let identity = identities.arrive(&Secret::new(kept.to_owned()), &arrival).await;
        let identity = identity.map_err(|error| unidentified(&error))?;
        if !what.starts_with(CONFIRM) {
            let person = self.known(&identity, &from).await?;
            let browser = self.browser_of(Some(person.user.id), &browsers).await?;
            let signed_in = self.begin(&person, from, By::Provider, browser).await?;
            return Ok(Arrived::SignedIn(signed_in, what.to_owned()));
        }
        let visitor = visitor.filter(|visitor| what == confirming(visitor)).ok_or_else(late)?;
        let kept = self.users.user(visitor.user).await?.ok_or_else(stranger)?;
        let same = kept.subject.as_deref() == Some(&identity.subject);
        let asked = identity.authenticated_at.is_some_and(|at| at >= until - AWAY - CLOCKS);
        if !same || !asked {
            self.note_refusal(Some(&kept), "confirmation", &from);
            let text = "you were not asked there who you are: try again";
            return Err(PortalError::Invalid(text.to_owned()));
        }
        Ok(Arrived::Asked(self.asked_anew(&visitor)?))
    }
}
