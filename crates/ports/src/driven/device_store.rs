//! Which devices each session is bound to.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    binding::{DeviceNumber, JoinCode, JoinedBy, SecretHash},
    id::SessionId,
};

use crate::StoreError;

/// Keeps the devices of sessions, and the codes by which others join.
///
/// Whatever implements this passes `testkit::store_contract!`.
#[async_trait]
pub trait DeviceStore: Send + Sync {
    /// Which of a session's devices has this secret.
    async fn device(&self, session: SessionId, secret: &SecretHash) -> Result<Binding, StoreError>;

    /// Binds a session to its first device. `false`: it has one already, or there is no such
    /// session. Of two at the same moment one succeeds.
    async fn bind(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Adds a device that the active viewer approved. A device that is one already stays what it
    /// is. `None`: the session has no device yet, or as many as it may have.
    async fn approve(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<Option<DeviceNumber>, StoreError>;

    /// Keeps a code; one of the same kind that the session had before is void from then on.
    async fn offer_code(&self, code: &JoinCode) -> Result<(), StoreError>;

    /// Adds the device with this secret where the code is one of the session's and has not
    /// expired, and voids the code. A wrong short code is counted before it is compared, also
    /// where several come at the same moment; after
    /// [`MAX_CODE_TRIES`](domain::binding::MAX_CODE_TRIES) of them no short code of the session
    /// is accepted until a new one is offered. Long codes are not affected by that.
    async fn redeem_code(
        &self,
        session: SessionId,
        code: &SecretHash,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<RedeemOutcome, StoreError>;

    /// Notes what was answered on a device to the question for consent, for the timeline.
    async fn record_consent(
        &self,
        session: SessionId,
        device: DeviceNumber,
        agreed: bool,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Forgets codes that expired before `now`. Returns how many.
    async fn delete_expired_codes(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// What a secret is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// The session has no device yet.
    Unbound,
    /// That of one of its devices.
    Bound(DeviceNumber),
    /// The session has devices; this is none of them.
    Foreign,
}

/// The result of redeeming a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedeemOutcome {
    Joined(DeviceNumber, JoinedBy),
    /// No such code, or it expired, or was used, or too many wrong ones were tried.
    Refused,
    /// The code is right, and the session has as many devices as it may have.
    Full,
}
