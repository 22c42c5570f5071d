//! Password hashing and one-time codes.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::secret::Secret;

use crate::{StoreError, account_store::PasswordHash};

/// Hashes passwords, slowly on purpose, with few hashes at the same time.
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    async fn hash(&self, password: Secret) -> Result<PasswordHash, StoreError>;

    /// Returns whether a password has this hash. Without a hash the result is `false`, after the
    /// same time.
    async fn verify(&self, password: Secret, hash: Option<PasswordHash>) -> bool;

    /// Returns whether a password is on a list of frequent and breached ones, in upper or lower
    /// case.
    fn is_frequent(&self, password: &Secret) -> bool;

    /// Returns whether an attacker who knows these words would guess the password soon.
    async fn is_guessable(&self, password: Secret, words: Vec<String>) -> bool;
}

/// Creates and verifies time-based one-time codes (RFC 6238): six digits, with steps of 30 s.
pub trait TotpVerifier: Send + Sync {
    /// Encodes a secret of 160 bits in base32.
    fn secret(&self, bits: [u8; 20]) -> Secret;

    /// Returns the time step of a code if it is the current step, the previous or the next one.
    fn step(&self, secret: &Secret, code: &str, now: DateTime<Utc>) -> Option<i64>;

    /// Returns the URL that an authenticator scans.
    fn url(&self, secret: &Secret, account: &str) -> Secret;
}
