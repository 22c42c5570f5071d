//! People who are invited into a team, whoever has their address elsewhere.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::UserId;

use crate::{StoreError, account_store::User};

/// Keeps people who were invited by an address that another person has. To their team they are like
/// anybody who was invited: nothing that a team sees tells the one from the other.
#[async_trait]
pub trait InvitationStore: Send + Sync {
    /// Invites somebody into a team, whoever has the address elsewhere. They are one of the team's
    /// people from then on, but are not found by the address before it is theirs
    /// ([`Self::claim_address`]). `false`: the team has invited that address so already.
    async fn add_invited(&self, user: &User, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Gives somebody who was invited the address that they were invited by. `false`, and nothing is
    /// changed: another person has it. Of two at once one succeeds.
    async fn claim_address(&self, id: UserId) -> Result<bool, StoreError>;
}
