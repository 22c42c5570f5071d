//! TOTP codes as a second factor, and the recovery codes for a lost one.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::secret::Secret;
use ports::{
    StoreError,
    account_store::{CodeHash, SecondFactor, SecondFactors, StoredUser},
    clock::Clock,
    credentials::TotpVerifier,
    driving::{PortalError, SignedInUser, TotpSetup},
    encryption::Cipher,
    random::RandomSource,
};

use super::hash_of;

/// How long a TOTP secret can be enabled after it was shown.
const SETUP_TTL: TimeDelta = TimeDelta::minutes(30);
const RECOVERY_CODES: usize = 10;
/// The length of a recovery code: 120 bits in base32, enough to store a plain hash of it. Earlier
/// versions issued codes of 16 characters, which are still accepted.
const RECOVERY_CODE_CHARS: usize = 24;

/// Issues and checks TOTP codes and recovery codes.
#[derive(Clone)]
pub struct SecondFactorCodes {
    pub second_factors: Arc<dyn SecondFactors>,
    pub totp: Arc<dyn TotpVerifier>,
    pub cipher: Arc<dyn Cipher>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

impl SecondFactorCodes {
    /// Returns whether a code is an unused TOTP code or recovery code of this account, and uses it
    /// up.
    pub(crate) async fn use_code(
        &self,
        account: &StoredUser,
        code: &str,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let step = account.totp.as_ref().and_then(|secret| self.totp.step(secret, code, now));
        if let Some(step) = step {
            return self.second_factors.use_step(account.user.id, step).await;
        }
        self.second_factors.use_recovery(account.user.id, &hash_of(&normalized(code))).await
    }

    /// Returns a secret to enable TOTP codes with: that of `earlier`, where it is still valid, or a
    /// new one.
    pub(crate) fn setup(&self, user: &SignedInUser, earlier: Option<&str>) -> TotpSetup {
        let known = earlier.and_then(|sealed| self.setup_secret(user, sealed).zip(Some(sealed)));
        let (secret, sealed) = if let Some((secret, sealed)) = known {
            (secret, sealed.to_owned())
        } else {
            let secret = self.base32_secret();
            let until = (self.clock.now() + SETUP_TTL).timestamp();
            let text = format!("{until}.{}", secret.expose());
            // A setup that cannot be encrypted cannot be enabled later.
            let ciphertext = self.cipher.encrypt_text(&context(user), &text).unwrap_or_default();
            (secret, URL_SAFE_NO_PAD.encode(ciphertext))
        };
        let url = self.totp.url(&secret, &user.email);
        TotpSetup { secret, url, sealed: Secret::new(sealed) }
    }

    /// Returns the secret of a setup that this user was shown and that has not expired.
    fn setup_secret(&self, user: &SignedInUser, sealed: &str) -> Option<Secret> {
        let ciphertext = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let text = self.cipher.decrypt_text(&context(user), &ciphertext).ok()?;
        let (until, secret) = text.split_once('.')?;
        let until: i64 = until.parse().ok()?;
        (self.clock.now().timestamp() < until).then(|| Secret::new(secret.to_owned()))
    }

    /// Checks the first code of a setup. Returns the second factor to be stored, and the recovery
    /// codes to be shown once.
    pub(crate) fn complete_setup(
        &self,
        user: &SignedInUser,
        sealed: &str,
        code: &str,
    ) -> Result<(SecondFactor, Vec<Secret>), PortalError> {
        let late = || PortalError::Invalid("the QR code has expired. Scan the new one".into());
        let totp = self.setup_secret(user, sealed).ok_or_else(late)?;
        let step = self.totp.step(&totp, code, self.clock.now()).ok_or(PortalError::WrongCode)?;
        let (codes, recovery) = self.recovery_codes();
        Ok((SecondFactor { totp, step, recovery }, codes))
    }

    /// Returns fresh recovery codes, and their hashes to be stored.
    pub(crate) fn recovery_codes(&self) -> (Vec<Secret>, Vec<CodeHash>) {
        let codes: Vec<_> =
            std::iter::repeat_with(|| self.recovery_code()).take(RECOVERY_CODES).collect();
        let hashes = codes.iter().map(|code| hash_of(&normalized(code.expose()))).collect();
        (codes, hashes)
    }

    /// Returns a code in six groups of four characters, to be written down.
    fn recovery_code(&self) -> Secret {
        let secret = self.base32_secret().expose().to_lowercase();
        let text: Vec<_> = secret.chars().take(RECOVERY_CODE_CHARS).collect();
        let groups: Vec<String> = text.chunks(4).map(|group| group.iter().collect()).collect();
        Secret::new(groups.join("-"))
    }

    fn base32_secret(&self) -> Secret {
        let bits = self.random.random_bytes();
        self.totp.secret(bits.first_chunk().copied().unwrap_or_default())
    }
}

/// Returns a recovery code in the form that is hashed, however it was typed.
fn normalized(code: &str) -> Secret {
    let plain = code.chars().filter(char::is_ascii_alphanumeric).take(RECOVERY_CODE_CHARS + 1);
    Secret::new(plain.map(|c| c.to_ascii_lowercase()).collect())
}

fn context(user: &SignedInUser) -> String {
    format!("portal.offer.{}", user.user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_code_is_read_however_it_is_typed() {
        for (typed, code) in [
            ("abcd-efgh-ijkl-mnop-qrst-2345", "abcdefghijklmnopqrst2345"),
            (" ABCD efgh\u{2013}ijkl mnopQRST\t2345 ", "abcdefghijklmnopqrst2345"),
            ("Abcd-efgh-ijkl-mnop", "abcdefghijklmnop"),
        ] {
            assert_eq!(normalized(typed).expose(), code, "{typed}");
        }
        let long = normalized(&"a".repeat(1000));
        assert_eq!(long.expose().len(), RECOVERY_CODE_CHARS + 1, "a longer code matches none");
    }
}
