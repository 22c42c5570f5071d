//! What people sign in with, as it is made and checked.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::secret::Secret;

use crate::{StoreError, account_store::PasswordHash};

/// Hashes passwords, slowly on purpose and few at once.
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    async fn hash(&self, password: Secret) -> Result<PasswordHash, StoreError>;

    /// Whether a password has this hash. Without one the answer is `false`, and takes as long.
    async fn verify(&self, password: Secret, hash: Option<PasswordHash>) -> bool;

    /// Whether a password is on a list of frequent and breached ones, in whatever case it is written.
    fn is_frequent(&self, password: &Secret) -> bool;

    /// Whether somebody who knows these words would guess it soon.
    async fn is_guessable(&self, password: Secret, words: Vec<String>) -> bool;
}

/// One-time codes of time (RFC 6238): six digits, each for 30 s.
pub trait TotpVerifier: Send + Sync {
    /// A secret of 160 bits, in base32.
    fn secret(&self, bits: [u8; 20]) -> Secret;

    /// The step that a code is of, if it is of this one, the one before or the one after.
    fn step(&self, secret: &Secret, code: &str, now: DateTime<Utc>) -> Option<i64>;

    /// What an authenticator scans.
    fn url(&self, secret: &Secret, account: &str) -> Secret;
}
