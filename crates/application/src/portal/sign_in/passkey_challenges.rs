//! Challenges for passkeys, and the answers to them.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{id::UserId, secret::Secret};
use ports::{
    StoreError,
    clock::Clock,
    driving::{PasskeyChallenge, PortalError, SignedInUser},
    encryption::Cipher,
    passkeys::{Ceremony, Credential, PasskeyStore, PasskeyVerifier},
};

/// Returns the encryption context of a challenge to register a passkey. Each purpose has its own
/// context: the answer to one kind of challenge is not accepted for another.
pub(crate) fn registration_context(user: &SignedInUser) -> String {
    format!("portal.passkey.offer.{}", user.user)
}

/// Returns the encryption context of a challenge for the second factor of a sign-in.
pub(crate) fn sign_in_context(user: &SignedInUser) -> String {
    format!("portal.passkey.ask.{}", user.sign_in)
}

/// Returns the encryption context of a challenge for one re-authentication: the answer does not
/// count for the next one.
pub(crate) fn reauthentication_context(user: &SignedInUser) -> String {
    let before = user.authenticated.confirmed_at.map_or(0, |at| at.timestamp_micros());
    format!("portal.passkey.confirm.{}.{before}", user.sign_in)
}

/// Encrypts the state of challenges, which the browser keeps, and checks answers.
#[derive(Clone)]
pub struct PasskeyChallenges {
    pub passkeys: Arc<dyn PasskeyStore>,
    /// `None` where the deployment has no host name, and so can have no passkeys.
    pub verifier: Option<Arc<dyn PasskeyVerifier>>,
    pub cipher: Arc<dyn Cipher>,
    pub clock: Arc<dyn Clock>,
}

impl PasskeyChallenges {
    pub(crate) fn verifier(&self) -> Result<&dyn PasskeyVerifier, PortalError> {
        self.verifier.as_deref().ok_or(PortalError::NotFound("passkey"))
    }

    /// Returns the credentials of a member's passkeys, the oldest first.
    pub(crate) async fn credentials(&self, user: UserId) -> Result<Vec<Credential>, StoreError> {
        let stored = self.passkeys.passkeys(user).await?;
        Ok(stored.into_iter().map(|passkey| passkey.credential).collect())
    }

    /// Returns the challenge of a ceremony, with its state encrypted for this context.
    pub(crate) fn challenge(
        &self,
        context: &str,
        ceremony: Ceremony,
    ) -> Result<PasskeyChallenge, PortalError> {
        let state = self.cipher.encrypt_text(context, &URL_SAFE_NO_PAD.encode(ceremony.state));
        let state = state
            .map_err(|_| PortalError::Invalid("something went wrong. Try again".to_owned()))?;
        let sealed = Secret::new(URL_SAFE_NO_PAD.encode(state));
        Ok(PasskeyChallenge { options: ceremony.options, sealed })
    }

    /// Returns the state of a challenge of this context.
    pub(crate) fn state(&self, context: &str, sealed: &Secret) -> Option<Vec<u8>> {
        let ciphertext = URL_SAFE_NO_PAD.decode(sealed.expose()).ok()?;
        URL_SAFE_NO_PAD.decode(self.cipher.decrypt_text(context, &ciphertext).ok()?).ok()
    }

    /// Checks the answer to a challenge of this context, and stores that the passkey was used.
    pub(crate) async fn check(
        &self,
        user: UserId,
        context: &str,
        (sealed, answer): (&Secret, &str),
    ) -> Result<(), PortalError> {
        let stored = self.passkeys.passkeys(user).await?;
        let all: Vec<_> = stored.iter().map(|passkey| passkey.credential.clone()).collect();
        let verified = self
            .state(context, sealed)
            .and_then(|state| self.verifier().ok()?.verify(user, &all, &state, answer))
            .and_then(|credential| {
                let passkey =
                    stored.iter().find(|passkey| passkey.credential.id == credential.id)?;
                Some((passkey, credential.state))
            });
        let refused = || PortalError::Invalid("the passkey couldn't be verified".to_owned());
        let (passkey, state) = verified.ok_or_else(refused)?;
        let states = (passkey.credential.state.as_slice(), state.as_slice());
        if !self.passkeys.use_passkey(passkey.id, states, self.clock.now()).await? {
            let text = "the passkey was used at the same time. Try again";
            return Err(PortalError::Invalid(text.to_owned()));
        }
        Ok(())
    }
}
