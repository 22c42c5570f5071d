//! Password hashing with Argon2id (RFC 9106), and one-time codes with TOTP (RFC 6238).

use std::sync::Arc;

use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::secret::Secret;
use ports::{
    StoreError,
    account_store::PasswordHash,
    credentials::{PasswordHasher, TotpVerifier},
};
use tokio::sync::Semaphore;
use totp_rs::{Builder, Totp};
use zxcvbn::{Score, zxcvbn};

/// Each hash takes 19 MiB of memory while it is computed.
const MAX_CONCURRENT_HASHES: usize = 4;
/// The issuer name that authenticator apps show.
const ISSUER: &str = "Avouch";

/// Argon2id with 19 MiB, two passes and one lane, the minimum that OWASP recommends.
pub struct Argon2Passwords {
    room: Arc<Semaphore>,
    /// The hash of a random password. It is verified for unknown accounts, so that their responses
    /// take the same time.
    dummy_hash: PasswordHash,
}

impl Argon2Passwords {
    /// Prepares the hasher.
    ///
    /// # Errors
    /// The system's random number generator fails.
    pub fn new() -> Result<Self, StoreError> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)
            .map_err(|error| StoreError::new("make a salt", error.to_string()))?;
        let dummy_hash = hash(&Secret::new(format!("{salt:?}")))?;
        Ok(Self { room: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)), dummy_hash })
    }

    /// Runs a slow computation on a thread for blocking work.
    async fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let unusable = |error: String| StoreError::new("work on a password", error);
        let place = self.room.clone().acquire_owned().await;
        let place = place.map_err(|error| unusable(error.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        done.await.map_err(|error| unusable(error.to_string()))
    }
}

fn hash(password: &Secret) -> Result<PasswordHash, StoreError> {
    let hash = Argon2::default().hash_password(password.expose().as_bytes());
    let hash = hash.map_err(|error| StoreError::new("hash a password", error.to_string()))?;
    Ok(PasswordHash(hash.to_string()))
}

#[async_trait]
impl PasswordHasher for Argon2Passwords {
    async fn hash(&self, password: Secret) -> Result<PasswordHash, StoreError> {
        self.spawn_blocking(move || hash(&password)).await?
    }

    async fn verify(&self, password: Secret, hash: Option<PasswordHash>) -> bool {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.dummy_hash.clone());
        let fits = self.spawn_blocking(move || {
            let Ok(hash) = phc::PasswordHash::new(&hash.0) else { return false };
            Argon2::default().verify_password(password.expose().as_bytes(), &hash).is_ok()
        });
        fits.await.unwrap_or(false) && known
    }

    fn is_frequent(&self, password: &Secret) -> bool {
        breached_passwords::is_frequent(password.expose())
    }

    async fn is_guessable(&self, password: Secret, words: Vec<String>) -> bool {
        let score = self.spawn_blocking(move || {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            zxcvbn(password.expose(), &words).score()
        });
        score.await.is_ok_and(|score| score < Score::Three)
    }
}

// The list contains only passwords that are long enough to be chosen.
const _: () = assert!(breached_passwords::MIN_CHARS == domain::account::MIN_PASSWORD_CHARS);

/// Codes of six digits with HMAC-SHA-1, which all authenticator apps support.
pub struct TotpCodes;

fn totp(secret: &Secret, account: &str) -> Option<Totp> {
    let secret = totp_rs::Secret::try_from_base32(secret.expose()).ok()?;
    let builder = Builder::new().with_secret(secret).with_account_name(account);
    builder.with_issuer(Some(ISSUER)).build().ok()
}

impl TotpVerifier for TotpCodes {
    fn secret(&self, bits: [u8; 20]) -> Secret {
        Secret::new(totp_rs::Secret::new_stack(bits).to_base32())
    }

    fn step(&self, secret: &Secret, code: &str, now: DateTime<Utc>) -> Option<i64> {
        let digits: String = code.chars().filter(|c| !c.is_whitespace()).take(7).collect();
        let now = u64::try_from(now.timestamp()).ok()?;
        let step = totp(secret, "")?.check(&digits, now)?;
        i64::try_from(step).ok()
    }

    fn url(&self, secret: &Secret, account: &str) -> Secret {
        let url = totp(secret, account).and_then(|totp| totp.to_url().ok());
        Secret::new(url.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a time step.
    const STEP: i64 = 30;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    #[tokio::test]
    async fn a_password_fits_its_hash_alone() {
        let passwords = Argon2Passwords::new().unwrap();
        let hash = passwords.hash(secret("correct horse battery")).await.unwrap();
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(passwords.verify(secret("correct horse battery"), Some(hash.clone())).await);
        assert!(!passwords.verify(secret("correct horse batterz"), Some(hash)).await);
        assert!(!passwords.verify(secret("x"), Some(PasswordHash("x".into()))).await);
        assert!(!passwords.verify(secret("x"), None).await);
    }

    #[tokio::test]
    async fn what_is_tried_first_is_guessable() {
        let passwords = Argon2Passwords::new().unwrap();
        let words = || vec!["ada.lovelace@lender.example".to_owned(), "lender".to_owned()];
        for easy in ["aaaaaaaaaaaaaaaa", "passwordpassword", "123456789012345", "qwertyuiopasdfgh"]
        {
            assert!(passwords.is_guessable(secret(easy), words()).await, "{easy}");
        }
        let own = "ada.lovelace@lender.example";
        assert!(passwords.is_guessable(secret(own), words()).await);
        assert!(!passwords.is_guessable(secret("nine teapots under glass"), words()).await);
    }

    /// Passwords that zxcvbn rates as hard to guess, but that were breached.
    #[test]
    fn what_was_breached_is_frequent() {
        let passwords = Argon2Passwords::new().unwrap();
        for breached in ["girlsjustwannahavefun", "CorrectHorseBatteryStaple"] {
            assert!(passwords.is_frequent(&secret(breached)), "{breached}");
        }
        assert!(!passwords.is_frequent(&secret("nine teapots under glass")));
    }

    /// RFC 6238, appendix B, with six of its eight digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let codes = TotpCodes;
        let secret = codes.secret(*b"12345678901234567890");
        assert_eq!(secret.expose(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or_default();
        for (seconds, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (2_000_000_000, "279037")]
        {
            let step = Some(seconds / STEP);
            assert_eq!(codes.step(&secret, code, at(seconds)), step);
            assert_eq!(codes.step(&secret, code, at(seconds + STEP)), step, "one late");
            assert_eq!(codes.step(&secret, code, at(seconds + 2 * STEP)), None, "two late");
        }
        assert_eq!(codes.step(&secret, " 287 082 ", at(59)), Some(1));
        for odd in ["", "28708", "2870822", "28708x", "２８７０８２"] {
            assert_eq!(codes.step(&secret, odd, at(59)), None, "{odd}");
        }
        let url = codes.url(&secret, "ada@example.org");
        assert!(url.expose().starts_with("otpauth://totp/Avouch:ada"), "{}", url.expose());
    }
}
