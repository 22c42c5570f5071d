//! Passkeys of members, as a second factor (Web Authentication, level 3).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    account::Email,
    id::{PasskeyId, UserId},
};

use crate::{StoreError, account_store::CodeHash};

/// The maximum number of passkeys of one member.
pub const MAX_PASSKEYS: usize = 10;

/// Stores the passkeys of members.
#[async_trait]
pub trait PasskeyStore: Send + Sync {
    /// Stores a passkey. Recovery codes are given if and only if it is the member's first second
    /// factor. Returns `false`, and changes nothing, if that is not the case, if the passkey is
    /// already stored, or if the member has [`MAX_PASSKEYS`].
    async fn add_passkey(
        &self,
        passkey: &StoredPasskey,
        recovery: Option<&[CodeHash]>,
    ) -> Result<bool, StoreError>;

    /// Returns a member's passkeys, the oldest first.
    async fn passkeys(&self, user: UserId) -> Result<Vec<StoredPasskey>, StoreError>;

    /// Records a use of a passkey, and replaces its old state with the new one. Returns `false` if
    /// the state has changed in the meantime or the passkey no longer exists.
    async fn use_passkey(
        &self,
        id: PasskeyId,
        (old, new): (&[u8], &[u8]),
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Deletes a passkey; with the last second factor, also the recovery codes. Returns `false` if
    /// the member has no passkey with this identifier.
    async fn remove_passkey(&self, user: UserId, id: PasskeyId) -> Result<bool, StoreError>;
}

/// A passkey of a member. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPasskey {
    pub id: PasskeyId,
    pub user: UserId,
    /// The name that the member gave the passkey.
    pub name: String,
    pub credential: Credential,
    pub created_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

/// The credential record of a passkey, in the verifier's encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The credential identifier; unique.
    pub id: Vec<u8>,
    /// The public key.
    pub key: Vec<u8>,
    /// The parts that change with each use, such as the signature counter.
    pub state: Vec<u8>,
    /// The transports of the authenticator.
    pub transports: u8,
}

/// The options for a browser, and the state with which its answer is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceremony {
    /// JSON, as `parseCreationOptionsFromJSON` and `parseRequestOptionsFromJSON` take it.
    pub options: String,
    /// The state of the ceremony, valid for 5 minutes. The party that answers must be unable to
    /// change it.
    pub state: Vec<u8>,
}

/// Starts passkey ceremonies and verifies the answers of browsers.
pub trait PasskeyVerifier: Send + Sync {
    /// Starts the registration of a passkey on a device without one of the existing passkeys.
    /// `None` if an existing credential cannot be read.
    fn offer(&self, user: (UserId, &Email), existing: &[Credential]) -> Option<Ceremony>;

    /// Verifies the answer to a registration (its `toJSON`). `None` if it does not belong to this
    /// ceremony or is invalid.
    fn register(&self, state: &[u8], answer: &str) -> Option<Credential>;

    /// Starts an authentication with one of the existing passkeys.
    fn ask(&self, existing: &[Credential]) -> Option<Ceremony>;

    /// Verifies the answer to an authentication. Returns the credential that was used, with its new
    /// state; `None` if the answer is invalid or of another credential.
    fn verify(
        &self,
        user: UserId,
        existing: &[Credential],
        state: &[u8],
        answer: &str,
    ) -> Option<Credential>;
}
