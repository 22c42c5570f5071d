//! Signing in and re-authenticating at an identity provider.

use std::sync::Arc;

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use domain::secret::Secret;
use ports::{
    account_store::{ProviderSubjects, RequestOrigin, StoredUser, UserStore},
    clock::Clock,
    driving::{IdentityService, PortalError, SignInOutcome, SignedInUser},
    encryption::Cipher,
    identity::{
        AuthorizationCallback, AuthorizationPrompt, Identity, IdentityError, IdentityProvider,
    },
};

use super::{
    AuditTrail, KnownBrowsers, ProviderProofs, RefusedSignIns, RequestLimits, SignInIssuer,
    require_complete_sign_in, sign_in::FirstFactorKind,
};

/// How long a browser may stay at the provider.
const AUTHORIZATION_TTL: TimeDelta = TimeDelta::minutes(10);
/// How far the provider's clock may be behind the clock of this service.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);
const STATE_CONTEXT: &str = "portal.identity";
/// Begins the purpose of a re-authentication. No path of the portal begins so.
const CONFIRM: &str = "confirm.";

/// Implements [`IdentityService`].
pub struct Identities {
    /// `None` where the deployment has no identity provider.
    pub provider: Option<Arc<dyn IdentityProvider>>,
    pub users: Arc<dyn UserStore>,
    pub subjects: Arc<dyn ProviderSubjects>,
    pub issuer: SignInIssuer,
    pub browsers: KnownBrowsers,
    pub proofs: ProviderProofs,
    pub refusals: RefusedSignIns,
    pub limits: RequestLimits,
    pub audit: AuditTrail,
    pub cipher: Arc<dyn Cipher>,
    pub clock: Arc<dyn Clock>,
}

/// The state of an authorization request, which the browser keeps encrypted.
struct PendingAuthorization {
    until: DateTime<Utc>,
    /// The path to go on to, or the sign-in to re-authenticate.
    purpose: String,
    /// The state of the provider's adapter.
    state: Secret,
}

/// Logs why the provider identified no one, and returns what the member is told.
fn unidentified(error: &IdentityError) -> PortalError {
    tracing::warn!(%error, "the identity provider identified no one: a sign-in was refused");
    metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "refused").increment(1);
    let text = match error {
        IdentityError::Unreachable(_) => "sign-in is temporarily unavailable. Try again",
        IdentityError::Refused(_) => "your identity couldn't be verified. Try again",
        IdentityError::NoAddress => "your email isn't verified at the identity provider",
    };
    PortalError::Invalid(text.to_owned())
}

fn unknown_member() -> PortalError {
    let text = "no account found for this identity. Ask an owner of your team to invite you";
    PortalError::Invalid(text.to_owned())
}

fn late() -> PortalError {
    PortalError::Invalid("this took too long. Try again".to_owned())
}

/// Returns the purpose of a re-authentication of one sign-in.
fn reauthentication_of(user: &SignedInUser) -> String {
    format!("{CONFIRM}{}", user.sign_in)
}

impl Identities {
    fn provider(&self) -> Result<&dyn IdentityProvider, PortalError> {
        self.provider.as_deref().ok_or(PortalError::NotFound("provider"))
    }

    /// Returns the provider's URL for a browser, and the encrypted state that the browser keeps
    /// until it comes back.
    async fn authorization_request(
        &self,
        purpose: &str,
        prompt: AuthorizationPrompt,
    ) -> Result<(String, Secret), PortalError> {
        let request = self.provider()?.authorization_request(prompt).await;
        let request = request.map_err(|error| unidentified(&error))?;
        let until = (self.clock.now() + AUTHORIZATION_TTL).timestamp();
        let text = format!("{until} {purpose} {}", request.kept.expose());
        let ciphertext = self.cipher.encrypt_text(STATE_CONTEXT, &text);
        let ciphertext = ciphertext
            .map_err(|_| PortalError::Invalid("something went wrong. Try again".to_owned()))?;
        Ok((request.url, Secret::new(URL_SAFE_NO_PAD.encode(ciphertext))))
    }

    /// Decrypts the state that a browser came back with; `None` where it is not ours or expired.
    fn pending(&self, kept: &Secret) -> Option<PendingAuthorization> {
        let ciphertext = URL_SAFE_NO_PAD.decode(kept.expose()).ok()?;
        let text = self.cipher.decrypt_text(STATE_CONTEXT, &ciphertext).ok()?;
        let mut parts = text.splitn(3, ' ');
        let (until, purpose, state) = (parts.next()?, parts.next()?, parts.next()?);
        let until = DateTime::from_timestamp(until.parse().ok()?, 0)?;
        let state = Secret::new(state.to_owned());
        let pending = PendingAuthorization { until, purpose: purpose.to_owned(), state };
        (self.clock.now() < until).then_some(pending)
    }

    /// Returns the member whom the provider identified: by the provider's name for them, which
    /// stays theirs, or by their address as long as the provider has no name for them here.
    async fn member(
        &self,
        identity: &Identity,
        origin: &RequestOrigin,
    ) -> Result<StoredUser, PortalError> {
        if let Some(account) = self.subjects.user_by_subject(&identity.subject).await? {
            return Ok(account);
        }
        let account = self.users.user_by_email(&identity.email).await?;
        let account = account.ok_or_else(unknown_member)?;
        let issuer = |subject: &str| subject.split(' ').next().map(str::to_owned);
        let before = account.subject.as_deref();
        // The name that another provider gave counts no more: there is one provider at a time.
        if before.is_some_and(|before| issuer(before) == issuer(&identity.subject)) {
            tracing::warn!(
                user.id = %account.user.id,
                "the identity provider has another name for this address: a sign-in was refused"
            );
            return Err(unknown_member());
        }
        let event = ("identity.bind", identity.subject.as_str());
        self.audit.record_for_account(&account, origin, event).await?;
        let bound = self.subjects.bind_subject(account.user.id, before, &identity.subject).await?;
        if bound { Ok(account) } else { Err(unknown_member()) }
    }

    /// Issues a proof of re-authentication, if the provider has asked this user during this
    /// request.
    async fn reauthenticated(
        &self,
        user: Option<SignedInUser>,
        identity: &Identity,
        (pending, origin): (&PendingAuthorization, &RequestOrigin),
    ) -> Result<Secret, PortalError> {
        let user = user.filter(|user| pending.purpose == reauthentication_of(user));
        let user = user.ok_or_else(late)?;
        let account = self.users.user(user.user).await?.ok_or_else(unknown_member)?;
        let is_same = account.subject.as_deref() == Some(&identity.subject);
        let begun_at = pending.until - AUTHORIZATION_TTL;
        let was_asked = identity.authenticated_at.is_some_and(|at| at >= begun_at - MAX_CLOCK_SKEW);
        if !is_same || !was_asked {
            self.refusals.record(Some(&account), "confirmation", origin);
            let text = "the identity provider didn't ask you to sign in. Try again";
            return Err(PortalError::Invalid(text.to_owned()));
        }
        self.proofs.issue(&user)
    }
}

#[async_trait]
impl IdentityService for Identities {
    fn provider(&self) -> Option<&str> {
        self.provider.as_deref().map(IdentityProvider::name)
    }

    async fn begin_sign_in(
        &self,
        next: String,
        origin: RequestOrigin,
    ) -> Result<(String, Secret), PortalError> {
        self.limits.count_request(origin.address).await?;
        self.authorization_request(&next, AuthorizationPrompt::Any).await
    }

    async fn depart_to_confirm(
        &self,
        user: &SignedInUser,
    ) -> Result<(String, Secret), PortalError> {
        require_complete_sign_in(user)?;
        if !user.is_by_provider() {
            return Err(PortalError::Forbidden);
        }
        self.limits.count_request(user.from.address).await?;
        self.authorization_request(&reauthentication_of(user), AuthorizationPrompt::Login).await
    }

    async fn complete_sign_in(
        &self,
        kept: Secret,
        callback: AuthorizationCallback,
        origin: RequestOrigin,
        (user, browsers): (Option<SignedInUser>, Secret),
    ) -> Result<SignInOutcome, PortalError> {
        let provider = self.provider()?;
        self.limits.count_request(origin.address).await?;
        let pending = self.pending(&kept).ok_or_else(late)?;
        let identity = provider.exchange_code(&pending.state, &callback).await;
        let identity = identity.map_err(|error| unidentified(&error))?;
        if pending.purpose.starts_with(CONFIRM) {
            let proof = self.reauthenticated(user, &identity, (&pending, &origin)).await?;
            return Ok(SignInOutcome::Asked(proof));
        }
        let account = self.member(&identity, &origin).await?;
        let browser = self.browsers.recognize(Some(account.user.id), &browsers).await?;
        let by = FirstFactorKind::Provider;
        let signed_in = self.issuer.start(&account, origin, by, browser).await?;
        Ok(SignInOutcome::SignedIn(signed_in, pending.purpose))
    }
}
