//! Confirming again who somebody is before a sensitive change, and the form that waits meanwhile.

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::{
    account::MAX_PASSWORD_CHARS,
    reauthentication::{REAUTHENTICATION_TTL, SensitiveAction},
    secret::Secret,
};
use ports::{
    account_store::StoredUser,
    driving::{
        FirstFactor, PendingForm, PortalError, ReauthenticationProof, ReauthenticationService,
        SecondFactorProof, SignedInUser,
    },
};

use super::{
    People,
    accounts::{hash_of, passed},
    passkeys::confirming,
};

/// Bytes of a form's fields that are kept.
const MAX_FORM_BYTES: usize = 32 * 1024;
/// How long the answer of a provider of identities counts as the first half of a proof.
const PROVIDER_PROOF_TTL: TimeDelta = TimeDelta::minutes(10);

#[async_trait]
impl ReauthenticationService for People {
    async fn hold_form(
        &self,
        visitor: &SignedInUser,
        path: String,
        fields: Option<String>,
    ) -> Result<(), PortalError> {
        passed(visitor)?;
        if path.len() + fields.as_ref().map_or(0, String::len) > MAX_FORM_BYTES {
            return Err(PortalError::Invalid("that form is too large".to_owned()));
        }
        let until = (self.core.clock.now() + REAUTHENTICATION_TTL).timestamp();
        let kind = if fields.is_some() { "form" } else { "page" };
        let (id, fields) = (self.token(), fields.unwrap_or_default());
        let text = format!("{until}\n{}\n{kind}\n{path}\n{fields}", id.expose());
        let sealed = self.cipher.encrypt_text(&form_of(visitor), &text);
        let sealed = sealed.map_err(|_| PortalError::Invalid("try again".to_owned()))?;
        Ok(self.sign_ins.hold_form(visitor.sign_in, &sealed).await?)
    }

    async fn held_form(&self, visitor: &SignedInUser) -> Result<Option<PendingForm>, PortalError> {
        passed(visitor)?;
        let sealed = self.sign_ins.held_form(visitor.sign_in).await?;
        Ok(sealed.and_then(|sealed| self.open_form(visitor, &sealed)))
    }

    async fn take_held_form(
        &self,
        visitor: &SignedInUser,
        id: String,
    ) -> Result<Option<PendingForm>, PortalError> {
        passed(visitor)?;
        let Some(sealed) = self.sign_ins.held_form(visitor.sign_in).await? else { return Ok(None) };
        let held = self.open_form(visitor, &sealed).filter(|held| held.id == id);
        let Some(held) = held else { return Ok(None) };
        let taken = self.sign_ins.drop_form(visitor.sign_in, &sealed).await?;
        Ok(taken.then_some(held))
    }

    async fn reauthenticate(
        &self,
        visitor: &SignedInUser,
        token: Secret,
        proof: ReauthenticationProof,
    ) -> Result<Secret, PortalError> {
        passed(visitor)?;
        let counted = self.count_confirmation(visitor).await?;
        let kept = self.users.user(visitor.user).await?.ok_or(PortalError::Forbidden)?;
        let checked = match self.check_first(visitor, &kept, proof.first).await {
            Ok(()) if kept.user.has_second_factor => {
                self.check_second(visitor, &kept, proof.second).await
            }
            first => first,
        };
        if let Err(error) = checked {
            self.note_refusal(Some(&kept), "confirmation", &visitor.from);
            return Err(error);
        }
        self.forgive(counted).await;
        self.note(visitor, "sign-in.confirm", "").await?;
        let (fresh, now) = (self.token(), self.core.clock.now());
        if !self.sign_ins.confirm_sign_in(&hash_of(&token), &hash_of(&fresh), now).await? {
            return Err(PortalError::Forbidden);
        }
        Ok(fresh)
    }
}

/// The places of what is sealed here: of one sign-in each.
fn form_of(visitor: &SignedInUser) -> String {
    format!("portal.form.{}", visitor.sign_in)
}

fn asked_of(visitor: &SignedInUser) -> String {
    format!("portal.asked.{}", visitor.sign_in)
}

impl People {
    /// # Errors
    /// The visitor has to confirm first who they are.
    pub(super) fn confirmed(
        &self,
        visitor: &SignedInUser,
        change: SensitiveAction,
    ) -> Result<(), PortalError> {
        visitor.require_reauthentication(change, self.core.clock.now())
    }

    fn open_form(&self, visitor: &SignedInUser, sealed: &[u8]) -> Option<PendingForm> {
        let text = self.cipher.decrypt_text(&form_of(visitor), sealed).ok()?;
        let mut parts = text.splitn(5, '\n');
        let until: i64 = parts.next()?.parse().ok()?;
        let (id, kind, path, fields) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        (self.core.clock.now().timestamp() < until).then(|| PendingForm {
            id: id.to_owned(),
            path: path.to_owned(),
            fields: (kind == "form").then(|| fields.to_owned()),
        })
    }

    /// That a provider of identities has asked the visitor anew.
    pub(super) fn asked_anew(&self, visitor: &SignedInUser) -> Result<Secret, PortalError> {
        let until = (self.core.clock.now() + PROVIDER_PROOF_TTL).timestamp().to_string();
        let sealed = self.cipher.encrypt_text(&asked_of(visitor), &until);
        let sealed = sealed.map_err(|_| PortalError::Invalid("try again".to_owned()))?;
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(sealed)))
    }

    async fn check_first(
        &self,
        visitor: &SignedInUser,
        kept: &StoredUser,
        first: FirstFactor,
    ) -> Result<(), PortalError> {
        match first {
            // An old password is not worth what their provider asks for.
            FirstFactor::Password(password) if !visitor.is_by_provider() => {
                let sane = password.expose().chars().count() <= MAX_PASSWORD_CHARS;
                let hash = kept.password.clone().filter(|_| sane);
                let fits = self.passwords.verify(password, hash).await;
                if !fits {
                    return Err(PortalError::WrongPassword);
                }
                let ran_out = kept.has_expired_password(self.core.clock.now());
                if ran_out { Err(PortalError::PasswordRanOut) } else { Ok(()) }
            }
            FirstFactor::Provider(asked) if visitor.is_by_provider() => {
                let now = self.core.clock.now().timestamp();
                let sealed = URL_SAFE_NO_PAD.decode(asked.expose()).ok();
                let until =
                    sealed.and_then(|it| self.cipher.decrypt_text(&asked_of(visitor), &it).ok());
                let until = until.and_then(|until| until.parse::<i64>().ok());
                let late = || PortalError::Invalid("that took too long: try again".to_owned());
                until.filter(|until| now < *until).map(drop).ok_or_else(late)
            }
            FirstFactor::Password(_) | FirstFactor::Provider(_) => Err(PortalError::Forbidden),
        }
    }

    async fn check_second(
        &self,
        visitor: &SignedInUser,
        kept: &StoredUser,
        second: Option<SecondFactorProof>,
    ) -> Result<(), PortalError> {
        match second {
            None => Err(PortalError::WrongCode),
            Some(SecondFactorProof::Code(code)) => {
                let now = self.core.clock.now();
                let right = self.is_code_of(kept, &code, now).await?;
                if right { Ok(()) } else { Err(PortalError::WrongCode) }
            }
            Some(SecondFactorProof::Passkey { asked, answer }) => {
                self.check_passkey(visitor, &confirming(visitor), &asked, &answer).await
            }
        }
    }
}
