//! Passkeys as a second factor.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    id::PasskeyId, notice::AccountEvent, reauthentication::SensitiveAction, secret::Secret,
};
use ports::{
    account_store::SignInStore,
    clock::Clock,
    driving::{
        PasskeyChallenge, PasskeyRegistered, PasskeyService, PortalError, SignedIn, SignedInUser,
    },
    passkeys::{PasskeyStore, StoredPasskey},
    random::RandomSource,
};

use super::{
    AccountNotices, AuditTrail, PasskeyChallenges, RefusedSignIns, SecondFactorCodes, SignInIssuer,
    require_complete_sign_in,
    sign_in::{reauthentication_context, registration_context, sign_in_context},
};

const MAX_PASSKEY_NAME_CHARS: usize = 60;

/// Implements [`PasskeyService`].
pub struct Passkeys {
    pub passkeys: Arc<dyn PasskeyStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub challenges: PasskeyChallenges,
    /// Issues the recovery codes that come with a first passkey.
    pub codes: SecondFactorCodes,
    pub issuer: SignInIssuer,
    pub refusals: RefusedSignIns,
    pub audit: AuditTrail,
    pub notices: AccountNotices,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

fn invalid(text: &str) -> PortalError {
    PortalError::Invalid(text.to_owned())
}

#[async_trait]
impl PasskeyService for Passkeys {
    async fn passkeys(
        &self,
        user: &SignedInUser,
    ) -> Result<Option<Vec<StoredPasskey>>, PortalError> {
        require_complete_sign_in(user)?;
        if self.challenges.verifier.is_none() {
            return Ok(None);
        }
        Ok(Some(self.passkeys.passkeys(user.user).await?))
    }

    async fn offer_passkey(&self, user: &SignedInUser) -> Result<PasskeyChallenge, PortalError> {
        self.require_for_credentials(user)?;
        let email =
            user.email.parse().map_err(|_| invalid("passkeys aren't available for your email"))?;
        let known = self.challenges.credentials(user.user).await?;
        let ceremony = self.challenges.verifier()?.offer((user.user, &email), &known);
        let ceremony = ceremony.ok_or_else(|| invalid("something went wrong. Try again"))?;
        self.challenges.challenge(&registration_context(user), ceremony)
    }

    async fn keep_passkey(
        &self,
        user: &SignedInUser,
        name: String,
        sealed: Secret,
        answer: String,
    ) -> Result<Vec<Secret>, PortalError> {
        self.require_for_credentials(user)?;
        let name = checked_name(&name)?;
        let state = self.challenges.state(&registration_context(user), &sealed);
        let registered =
            state.and_then(|state| self.challenges.verifier().ok()?.register(&state, &answer));
        let credential =
            registered.ok_or_else(|| invalid("the passkey couldn't be created. Try again"))?;
        let (codes, hashes) = self.codes.recovery_codes();
        let is_first = !user.has_second_factor();
        self.audit.record(user, "passkey.add", &format!("{name:?}")).await?;
        let passkey = StoredPasskey {
            id: PasskeyId::from_u128(self.random.new_id()),
            user: user.user,
            name: name.to_owned(),
            credential,
            created_at: self.clock.now(),
            used_at: None,
        };
        let recovery = is_first.then_some(hashes.as_slice());
        if !self.passkeys.add_passkey(&passkey, recovery).await? {
            return Err(invalid("you already added this passkey or reached the limit of passkeys"));
        }
        // The other sign-ins were made without the new factor.
        self.sign_ins.end_other_sign_ins(user.user, Some(user.sign_in)).await?;
        self.notices.notify(user.user, AccountEvent::PasskeyAdded, &user.from).await?;
        Ok(if is_first { codes } else { vec![] })
    }

    async fn drop_passkey(&self, user: &SignedInUser, id: PasskeyId) -> Result<(), PortalError> {
        self.require_for_credentials(user)?;
        self.audit.record(user, "passkey.drop", &id.to_string()).await?;
        if !self.passkeys.remove_passkey(user.user, id).await? {
            return Err(PortalError::NotFound("passkey"));
        }
        Ok(self.notices.notify(user.user, AccountEvent::PasskeyRemoved, &user.from).await?)
    }

    async fn ask_passkey(
        &self,
        user: &SignedInUser,
    ) -> Result<Option<PasskeyChallenge>, PortalError> {
        let Ok(verifier) = self.challenges.verifier() else { return Ok(None) };
        let known = self.challenges.credentials(user.user).await?;
        let Some(ceremony) = verifier.ask(&known) else { return Ok(None) };
        let context =
            if user.passed { reauthentication_context(user) } else { sign_in_context(user) };
        self.challenges.challenge(&context, ceremony).map(Some)
    }

    async fn show_passkey(
        &self,
        user: &SignedInUser,
        token: Secret,
        answered: PasskeyRegistered,
    ) -> Result<SignedIn, PortalError> {
        let PasskeyRegistered { asked, answer, browsers } = answered;
        let attempt = self.issuer.begin_second_factor(&token, &user.from, &browsers).await?;
        let answer = (&asked, answer.as_str());
        let checked = self.challenges.check(user.user, &sign_in_context(user), answer).await;
        if let Err(error) = checked {
            self.refusals.record(Some(&attempt.account), "passkey", &user.from);
            return Err(error);
        }
        self.issuer.accept_second_factor(attempt, &token, &user.from).await
    }
}

impl Passkeys {
    fn require_for_credentials(&self, user: &SignedInUser) -> Result<(), PortalError> {
        require_complete_sign_in(user)?;
        user.require_reauthentication(SensitiveAction::Credentials, self.clock.now())
    }
}

fn checked_name(name: &str) -> Result<&str, PortalError> {
    let name = name.trim();
    let fits = (1..=MAX_PASSKEY_NAME_CHARS).contains(&name.chars().count());
    if fits && !name.contains(char::is_control) {
        return Ok(name);
    }
    Err(invalid(&format!("enter a name of 1 to {MAX_PASSKEY_NAME_CHARS} characters")))
}
