//! Passkeys as a second factor.

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    id::PasskeyId, notice::AccountEvent, reauthentication::SensitiveAction, secret::Secret,
};
use ports::{
    driving::{
        PasskeyChallenge, PasskeyRegistered, PasskeyService, PortalError, SignedIn, SignedInUser,
    },
    passkeys::{Ceremony, Credential, PasskeyVerifier, StoredPasskey},
};
use uuid::Uuid;

use super::{People, accounts::passed};

/// Characters of a passkey's name.
const MAX_PASSKEY_NAME_CHARS: usize = 60;

/// The places of what is sealed: an answer to the one question is none to the other.
fn offered_to(visitor: &SignedInUser) -> String {
    format!("portal.passkey.offer.{}", visitor.user)
}

fn asked_of(visitor: &SignedInUser) -> String {
    format!("portal.passkey.ask.{}", visitor.sign_in)
}

/// Of one confirmation: an answer that was given before it does not count for the next one.
pub(super) fn confirming(visitor: &SignedInUser) -> String {
    let before = visitor.authenticated.confirmed_at.map_or(0, |at| at.timestamp_micros());
    format!("portal.passkey.confirm.{}.{before}", visitor.sign_in)
}

fn unfit(what: &str) -> PortalError {
    PortalError::Invalid(what.to_owned())
}

impl People {
    fn party(&self) -> Result<&dyn PasskeyVerifier, PortalError> {
        self.party.as_deref().ok_or(PortalError::NotFound("passkey"))
    }

    /// Makes a question whose answer can be told from others'.
    fn asked(&self, place: &str, ceremony: Ceremony) -> Result<PasskeyChallenge, PortalError> {
        let state = self.cipher.encrypt_text(place, &URL_SAFE_NO_PAD.encode(ceremony.state));
        let state = state.map_err(|_| unfit("try again"))?;
        let sealed = Secret::new(URL_SAFE_NO_PAD.encode(state));
        Ok(PasskeyChallenge { options: ceremony.options, sealed })
    }

    fn state(&self, place: &str, sealed: &Secret) -> Option<Vec<u8>> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed.expose()).ok()?;
        URL_SAFE_NO_PAD.decode(self.cipher.decrypt_text(place, &sealed).ok()?).ok()
    }

    /// Checks an answer to what was asked at this place, and notes that the passkey was used.
    pub(super) async fn check_passkey(
        &self,
        visitor: &SignedInUser,
        place: &str,
        asked: &Secret,
        answer: &str,
    ) -> Result<(), PortalError> {
        let have = self.passkeys.passkeys(visitor.user).await?;
        let all: Vec<_> = have.iter().map(|passkey| passkey.credential.clone()).collect();
        let state = self.state(place, asked);
        let used = state
            .and_then(|state| self.party().ok()?.verify(visitor.user, &all, &state, answer))
            .and_then(|used| {
                let passkey = have.iter().find(|passkey| passkey.credential.id == used.id)?;
                Some((passkey, used.state))
            });
        let (passkey, state) = used.ok_or_else(|| unfit("that passkey was not accepted"))?;
        let states = (passkey.credential.state.as_slice(), state.as_slice());
        if !self.passkeys.use_passkey(passkey.id, states, self.core.clock.now()).await? {
            return Err(unfit("that passkey was used meanwhile: try again"));
        }
        Ok(())
    }

    async fn credentials(&self, visitor: &SignedInUser) -> Result<Vec<Credential>, PortalError> {
        let kept = self.passkeys.passkeys(visitor.user).await?;
        Ok(kept.into_iter().map(|passkey| passkey.credential).collect())
    }
}

#[async_trait]
impl PasskeyService for People {
    async fn passkeys(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Option<Vec<StoredPasskey>>, PortalError> {
        passed(visitor)?;
        if self.party.is_none() {
            return Ok(None);
        }
        Ok(Some(self.passkeys.passkeys(visitor.user).await?))
    }

    async fn offer_passkey(&self, visitor: &SignedInUser) -> Result<PasskeyChallenge, PortalError> {
        passed(visitor)?;
        self.confirmed(visitor, SensitiveAction::Credentials)?;
        let email = visitor.email.parse().map_err(|_| unfit("your address has no passkeys"))?;
        let have = self.credentials(visitor).await?;
        let ceremony = self.party()?.offer((visitor.user, &email), &have);
        self.asked(&offered_to(visitor), ceremony.ok_or_else(|| unfit("try again"))?)
    }

    async fn keep_passkey(
        &self,
        visitor: &SignedInUser,
        name: String,
        asked: Secret,
        answer: String,
    ) -> Result<Vec<Secret>, PortalError> {
        passed(visitor)?;
        self.confirmed(visitor, SensitiveAction::Credentials)?;
        let name = name.trim();
        if !(1..=MAX_PASSKEY_NAME_CHARS).contains(&name.chars().count())
            || name.contains(char::is_control)
        {
            return Err(unfit(&format!(
                "a passkey's name has 1 to {MAX_PASSKEY_NAME_CHARS} characters"
            )));
        }
        let state = self.state(&offered_to(visitor), &asked);
        let made = state.and_then(|state| self.party().ok()?.register(&state, &answer));
        let credential = made.ok_or_else(|| unfit("your device made no passkey: try again"))?;
        let (codes, hashes) = self.fresh_recovery_codes();
        let first = !visitor.has_second_factor();
        self.note(visitor, "passkey.add", &format!("{name:?}")).await?;
        let passkey = StoredPasskey {
            id: PasskeyId::from_uuid(Uuid::from_u128(self.core.random.new_id())),
            user: visitor.user,
            name: name.to_owned(),
            credential,
            created_at: self.core.clock.now(),
            used_at: None,
        };
        let recovery = first.then_some(hashes.as_slice());
        if !self.passkeys.add_passkey(&passkey, recovery).await? {
            return Err(unfit("you have that passkey already, or as many as may be"));
        }
        // Whoever was in without it is so no longer.
        self.sign_ins.end_other_sign_ins(visitor.user, Some(visitor.sign_in)).await?;
        self.tell(visitor.user, AccountEvent::PasskeyAdded, &visitor.from).await?;
        Ok(if first { codes } else { vec![] })
    }

    async fn drop_passkey(&self, visitor: &SignedInUser, id: PasskeyId) -> Result<(), PortalError> {
        passed(visitor)?;
        self.confirmed(visitor, SensitiveAction::Credentials)?;
        self.note(visitor, "passkey.drop", &id.to_string()).await?;
        let gone = self.passkeys.remove_passkey(visitor.user, id).await?;
        if !gone {
            return Err(PortalError::NotFound("passkey"));
        }
        Ok(self.tell(visitor.user, AccountEvent::PasskeyRemoved, &visitor.from).await?)
    }

    async fn ask_passkey(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Option<PasskeyChallenge>, PortalError> {
        let Ok(party) = self.party() else { return Ok(None) };
        let ceremony = party.ask(&self.credentials(visitor).await?);
        let place = if visitor.passed { confirming(visitor) } else { asked_of(visitor) };
        ceremony.map(|ceremony| self.asked(&place, ceremony)).transpose()
    }

    async fn show_passkey(
        &self,
        visitor: &SignedInUser,
        token: Secret,
        answered: PasskeyRegistered,
    ) -> Result<SignedIn, PortalError> {
        let now = self.core.clock.now();
        let kept = self.awaiting_second_factor(&token, now).await?;
        let PasskeyRegistered { asked, answer, browsers } = answered;
        let browser = self.browser_of(Some(visitor.user), &browsers).await?;
        let counted = self.count_attempt(&visitor.email, &visitor.from, &browser).await?;
        if let Err(error) = self.check_passkey(visitor, &asked_of(visitor), &asked, &answer).await {
            self.note_refusal(Some(&kept), "passkey", &visitor.from);
            return Err(error);
        }
        self.forgive(counted).await;
        self.finish_sign_in(&kept, &token, &visitor.from, browser).await
    }
}
