//! Proofs that the identity provider has asked a signed-in user anew who they are.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::secret::Secret;
use ports::{
    clock::Clock,
    driving::{PortalError, SignedInUser},
    encryption::Cipher,
};

/// How long a proof counts as the first factor of a re-authentication.
const PROVIDER_PROOF_TTL: TimeDelta = TimeDelta::minutes(10);

/// Issues encrypted proofs, which the browser keeps, and verifies them.
#[derive(Clone)]
pub struct ProviderProofs {
    pub cipher: Arc<dyn Cipher>,
    pub clock: Arc<dyn Clock>,
}

impl ProviderProofs {
    /// Issues a proof for one sign-in.
    pub(crate) fn issue(&self, user: &SignedInUser) -> Result<Secret, PortalError> {
        let until = (self.clock.now() + PROVIDER_PROOF_TTL).timestamp().to_string();
        let ciphertext = self.cipher.encrypt_text(&context(user), &until);
        let ciphertext = ciphertext
            .map_err(|_| PortalError::Invalid("something went wrong. Try again".to_owned()))?;
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(ciphertext)))
    }

    /// Verifies that a proof was issued for this sign-in and has not expired.
    pub(crate) fn verify(&self, user: &SignedInUser, proof: &Secret) -> Result<(), PortalError> {
        let late = || PortalError::Invalid("this took too long. Try again".to_owned());
        let until = self.expiry(user, proof).ok_or_else(late)?;
        if self.clock.now().timestamp() < until { Ok(()) } else { Err(late()) }
    }

    /// Returns the Unix time at which a proof expires.
    fn expiry(&self, user: &SignedInUser, proof: &Secret) -> Option<i64> {
        let ciphertext = URL_SAFE_NO_PAD.decode(proof.expose()).ok()?;
        self.cipher.decrypt_text(&context(user), &ciphertext).ok()?.parse().ok()
    }
}

fn context(user: &SignedInUser) -> String {
    format!("portal.asked.{}", user.sign_in)
}
