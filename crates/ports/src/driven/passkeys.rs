//! Passkeys: keys in people's devices, as a second factor (Web Authentication, level 3).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    account::Email,
    id::{PasskeyId, UserId},
};

use crate::{StoreError, account_store::CodeHash};

/// Passkeys of one person.
pub const MAX_PASSKEYS: usize = 10;

/// Keeps people's passkeys.
#[async_trait]
pub trait PasskeyStore: Send + Sync {
    /// Keeps a passkey: with codes for who loses it where it is the person's first second factor,
    /// and only there. `false`, and nothing is changed: that is not so, somebody has the passkey
    /// already, or the person has [`MOST`].
    async fn add_passkey(
        &self,
        passkey: &StoredPasskey,
        recovery: Option<&[CodeHash]>,
    ) -> Result<bool, StoreError>;

    /// A person's passkeys, the oldest first.
    async fn passkeys(&self, user: UserId) -> Result<Vec<StoredPasskey>, StoreError>;

    /// Notes that a passkey was used, and what its device says of itself since. `false`: that
    /// changed meanwhile, or it is gone.
    async fn use_passkey(
        &self,
        id: PasskeyId,
        (old, new): (&[u8], &[u8]),
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Forgets a passkey, and with the last second factor its recovery codes. `false`: the person
    /// has none of that name.
    async fn remove_passkey(&self, user: UserId, id: PasskeyId) -> Result<bool, StoreError>;
}

/// A passkey of somebody's. Nothing in it opens anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPasskey {
    pub id: PasskeyId,
    pub user: UserId,
    /// What they call it.
    pub name: String,
    pub credential: Credential,
    pub created_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

/// What a device has told of a passkey, as the verifier reads it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name in the device; unique.
    pub id: Vec<u8>,
    /// The public key.
    pub key: Vec<u8>,
    /// What changes as it is used: its counter among that.
    pub state: Vec<u8>,
    /// How the device is reached.
    pub transports: u8,
}

/// What a browser is asked, and what is needed to understand its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceremony {
    /// JSON, as `parseCreationOptionsFromJSON` and `parseRequestOptionsFromJSON` take it.
    pub options: String,
    /// To be kept from whoever answers, or from being changed by them; good for 5 minutes.
    pub state: Vec<u8>,
}

/// Asks for passkeys and verifies what browsers answer.
pub trait PasskeyVerifier: Send + Sync {
    /// Asks for a new passkey, on another device than those that somebody has. `None`: what they
    /// have cannot be read.
    fn offer(&self, person: (UserId, &Email), have: &[Credential]) -> Option<Ceremony>;

    /// Reads the answer (`toJSON` of it). `None`: it is none to this, or not right.
    fn register(&self, state: &[u8], answer: &str) -> Option<Credential>;

    /// Asks for one of somebody's passkeys.
    fn ask(&self, have: &[Credential]) -> Option<Ceremony>;

    /// Which of somebody's passkeys an answer is of, as it is after that. `None`: of none, or the
    /// answer is not right.
    fn verify(
        &self,
        person: UserId,
        have: &[Credential],
        state: &[u8],
        answer: &str,
    ) -> Option<Credential>;
}
