//! The store of the devices that sessions are bound to.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    binding::{DeviceNumber, JoinCode, JoinedBy, SecretHash},
    id::SessionId,
};

use crate::StoreError;

/// Stores the devices of sessions, and the codes with which other devices join.
///
/// Every implementation passes `testkit::stores_contract!`.
#[async_trait]
pub trait DeviceStore: Send + Sync {
    /// Returns which of a session's devices has this secret.
    async fn device(&self, session: SessionId, secret: &SecretHash) -> Result<Binding, StoreError>;

    /// Binds a session to its first device. Returns `false` if the session already has one or does
    /// not exist. Of two concurrent calls one succeeds.
    async fn bind(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Adds a device that the active viewer approved. A device of the session keeps its number.
    /// Returns `None` if the session has no device yet, or the maximum number of them.
    async fn approve(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<Option<DeviceNumber>, StoreError>;

    /// Stores a code. An earlier code of the same kind of the session is void from then on.
    async fn offer_code(&self, code: &JoinCode) -> Result<(), StoreError>;

    /// Adds the device with this secret if the code is one of the session's and has not expired,
    /// and voids the code. A wrong short code is counted before it is compared, also if several
    /// arrive concurrently; after [`MAX_CODE_TRIES`](domain::binding::MAX_CODE_TRIES) of them no
    /// short code of the session is accepted until a new one is offered. Long codes are not affected
    /// by that.
    async fn redeem_code(
        &self,
        session: SessionId,
        code: &SecretHash,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<RedeemOutcome, StoreError>;

    /// Records the answer of a device to the question for consent, for the timeline.
    async fn record_consent(
        &self,
        session: SessionId,
        device: DeviceNumber,
        agreed: bool,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Deletes codes that expired before `now` and returns their number.
    async fn delete_expired_codes(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// The relation of a device's secret to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// The session has no device yet.
    Unbound,
    /// The secret is of one of the session's devices.
    Bound(DeviceNumber),
    /// The session has devices, and the secret is of none of them.
    Foreign,
}

/// The result of redeeming a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedeemOutcome {
    Joined(DeviceNumber, JoinedBy),
    /// The code does not exist, has expired or was used, or too many wrong ones were tried.
    Refused,
    /// The code is right, and the session has the maximum number of devices.
    Full,
}
