//! Re-authentication before a sensitive change, and the form that waits for it.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{reauthentication::REAUTHENTICATION_TTL, secret::Secret};
use ports::{
    account_store::{HeldForms, SignInStore, StoredUser, UserStore},
    clock::Clock,
    driving::{
        FirstFactor, PendingForm, PortalError, ReauthenticationProof, ReauthenticationService,
        SecondFactorProof, SignedInUser,
    },
    encryption::Cipher,
    random::RandomSource,
};

use super::{
    AttemptGuard, AuditTrail, PasskeyChallenges, PasswordRules, ProviderProofs, RefusedSignIns,
    SecondFactorCodes, require_complete_sign_in,
    sign_in::{hash_of, random_token, reauthentication_context},
};

/// The size of a path and fields that are held.
const MAX_FORM_BYTES: usize = 32 * 1024;

/// Implements [`ReauthenticationService`].
pub struct Reauthentication {
    pub users: Arc<dyn UserStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub forms: Arc<dyn HeldForms>,
    pub passwords: PasswordRules,
    pub proofs: ProviderProofs,
    pub codes: SecondFactorCodes,
    pub challenges: PasskeyChallenges,
    pub guard: AttemptGuard,
    pub refusals: RefusedSignIns,
    pub audit: AuditTrail,
    pub cipher: Arc<dyn Cipher>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl ReauthenticationService for Reauthentication {
    async fn hold_form(
        &self,
        user: &SignedInUser,
        path: String,
        fields: Option<String>,
    ) -> Result<(), PortalError> {
        require_complete_sign_in(user)?;
        if path.len() + fields.as_ref().map_or(0, String::len) > MAX_FORM_BYTES {
            return Err(PortalError::Invalid("the form is too large".to_owned()));
        }
        let until = (self.clock.now() + REAUTHENTICATION_TTL).timestamp();
        let kind = if fields.is_some() { "form" } else { "page" };
        let (id, fields) = (random_token(&*self.random), fields.unwrap_or_default());
        let text = format!("{until}\n{}\n{kind}\n{path}\n{fields}", id.expose());
        let ciphertext = self.cipher.encrypt_text(&form_context(user), &text);
        let ciphertext = ciphertext
            .map_err(|_| PortalError::Invalid("something went wrong. Try again".to_owned()))?;
        Ok(self.forms.hold_form(user.sign_in, &ciphertext).await?)
    }

    async fn held_form(&self, user: &SignedInUser) -> Result<Option<PendingForm>, PortalError> {
        require_complete_sign_in(user)?;
        let ciphertext = self.forms.held_form(user.sign_in).await?;
        Ok(ciphertext.and_then(|ciphertext| self.decrypt_form(user, &ciphertext)))
    }

    async fn take_held_form(
        &self,
        user: &SignedInUser,
        id: String,
    ) -> Result<Option<PendingForm>, PortalError> {
        require_complete_sign_in(user)?;
        let Some(ciphertext) = self.forms.held_form(user.sign_in).await? else {
            return Ok(None);
        };
        let form = self.decrypt_form(user, &ciphertext).filter(|form| form.id == id);
        let Some(form) = form else { return Ok(None) };
        let dropped = self.forms.drop_form(user.sign_in, &ciphertext).await?;
        Ok(dropped.then_some(form))
    }

    async fn reauthenticate(
        &self,
        user: &SignedInUser,
        token: Secret,
        proof: ReauthenticationProof,
    ) -> Result<Secret, PortalError> {
        require_complete_sign_in(user)?;
        let counted = self.guard.count_reauthentication(user).await?;
        let account = self.users.user(user.user).await?.ok_or(PortalError::Forbidden)?;
        if let Err(error) = self.check(user, &account, proof).await {
            self.refusals.record(Some(&account), "confirmation", &user.from);
            return Err(error);
        }
        self.guard.undo(counted).await;
        self.audit.record(user, "sign-in.confirm", "").await?;
        let (fresh, now) = (random_token(&*self.random), self.clock.now());
        if !self.sign_ins.confirm_sign_in(&hash_of(&token), &hash_of(&fresh), now).await? {
            return Err(PortalError::Forbidden);
        }
        Ok(fresh)
    }
}

impl Reauthentication {
    /// Decrypts the form of a sign-in, unless it has expired.
    fn decrypt_form(&self, user: &SignedInUser, ciphertext: &[u8]) -> Option<PendingForm> {
        let text = self.cipher.decrypt_text(&form_context(user), ciphertext).ok()?;
        let mut parts = text.splitn(5, '\n');
        let until: i64 = parts.next()?.parse().ok()?;
        let (id, kind, path, fields) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        (self.clock.now().timestamp() < until).then(|| PendingForm {
            id: id.to_owned(),
            path: path.to_owned(),
            fields: (kind == "form").then(|| fields.to_owned()),
        })
    }

    async fn check(
        &self,
        user: &SignedInUser,
        account: &StoredUser,
        proof: ReauthenticationProof,
    ) -> Result<(), PortalError> {
        self.check_first(user, account, proof.first).await?;
        if account.user.has_second_factor {
            self.check_second(user, account, proof.second).await?;
        }
        Ok(())
    }

    async fn check_first(
        &self,
        user: &SignedInUser,
        account: &StoredUser,
        first: FirstFactor,
    ) -> Result<(), PortalError> {
        match first {
            // A password does not replace what the provider asks its users for.
            FirstFactor::Password(password) if !user.is_by_provider() => {
                if !self.passwords.is_correct(password, account.password.clone()).await {
                    return Err(PortalError::WrongPassword);
                }
                let expired = account.has_expired_password(self.clock.now());
                if expired { Err(PortalError::PasswordRanOut) } else { Ok(()) }
            }
            FirstFactor::Provider(proof) if user.is_by_provider() => {
                self.proofs.verify(user, &proof)
            }
            FirstFactor::Password(_) | FirstFactor::Provider(_) => Err(PortalError::Forbidden),
        }
    }

    async fn check_second(
        &self,
        user: &SignedInUser,
        account: &StoredUser,
        second: Option<SecondFactorProof>,
    ) -> Result<(), PortalError> {
        match second {
            None => Err(PortalError::WrongCode),
            Some(SecondFactorProof::Code(code)) => {
                let is_right = self.codes.use_code(account, &code).await?;
                if is_right { Ok(()) } else { Err(PortalError::WrongCode) }
            }
            Some(SecondFactorProof::Passkey { asked, answer }) => {
                let context = reauthentication_context(user);
                self.challenges.check(user.user, &context, (&asked, &answer)).await
            }
        }
    }
}

fn form_context(user: &SignedInUser) -> String {
    format!("portal.form.{}", user.sign_in)
}
