//! The store of invited members whose address another member has.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::UserId;

use crate::{StoreError, account_store::User};

/// Stores members who were invited with an address that another member has. Their team sees them as
/// any other invited member, and cannot tell that the address is in use.
#[async_trait]
pub trait InvitationStore: Send + Sync {
    /// Adds an invited member to a team, even if another member has the address. The new member is
    /// not found by the address until it is theirs ([`Self::claim_address`]). Returns `false` if
    /// the team has already invited the address in this way.
    async fn add_invited(&self, user: &User, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Assigns an invited member the address of their invitation. Returns `false`, and changes
    /// nothing, if another member has it. Of two concurrent calls one succeeds.
    async fn claim_address(&self, id: UserId) -> Result<bool, StoreError>;
}
