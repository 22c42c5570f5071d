//! The services for a team's members and for account links.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    account::{LinkPurpose, Role},
    id::UserId,
    secret::Secret,
};

use super::{PortalError, SignedInUser};
use crate::{
    account_links::Mailed,
    account_store::{RequestOrigin, User},
};

/// Manages a team's members.
#[async_trait]
pub trait TeamService: Send + Sync {
    /// Returns the team's members, sorted by address.
    async fn members(&self, user: &SignedInUser) -> Result<Vec<Member>, PortalError>;

    /// Adds a member to the team and mails them a link to choose a password.
    async fn invite(&self, user: &SignedInUser, member: NewMember) -> Result<(), PortalError>;

    /// Mails another link to a member who has not chosen a password yet; the earlier link is void.
    async fn invite_again(&self, user: &SignedInUser, id: UserId) -> Result<(), PortalError>;

    /// Changes the role of a member, effective with their next request.
    async fn appoint(&self, user: &SignedInUser, id: UserId, role: Role)
    -> Result<(), PortalError>;

    /// Ends all sign-ins of a member.
    async fn sign_out_member(&self, user: &SignedInUser, id: UserId) -> Result<(), PortalError>;

    /// Returns whether all members of the team must have a second factor.
    async fn requires_second_factor(&self, user: &SignedInUser) -> Result<bool, PortalError>;

    /// Sets whether all members of the team must have a second factor. A member without one has to
    /// set it up before any other action, from their next request on.
    async fn require_second_factor(
        &self,
        user: &SignedInUser,
        required: bool,
    ) -> Result<(), PortalError>;

    /// Returns whether the team's sessions may have browsers in another region while all of their own are
    /// in use; `None` where the deployment has no regions.
    async fn allows_other_regions(&self, user: &SignedInUser) -> Result<Option<bool>, PortalError>;

    /// Sets whether the team's sessions may have browsers in another region. It applies to sessions that
    /// begin from now on.
    async fn allow_other_regions(
        &self,
        user: &SignedInUser,
        allowed: bool,
    ) -> Result<(), PortalError>;

    /// Removes a member from the team and deletes their account.
    async fn remove(&self, user: &SignedInUser, id: UserId) -> Result<(), PortalError>;
}

/// A member to be invited.
pub struct NewMember {
    pub email: String,
    pub role: Role,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub user: User,
    /// The state and the expiry of the member's account link.
    pub link: Option<(Mailed, DateTime<Utc>)>,
}

/// Lets members choose a password with a mailed link.
#[async_trait]
pub trait LinkService: Send + Sync {
    /// Mails a link to the member with this address. The result is the same if there is none.
    async fn forgot_password(&self, email: String, from: RequestOrigin) -> Result<(), PortalError>;

    /// Returns the account link of a token.
    ///
    /// # Errors
    /// [`PortalError::InvalidLink`] if this service did not issue the link, or the link has expired or
    /// was used.
    async fn mailed_link(&self, token: &Secret) -> Result<MailedLink, PortalError>;

    /// Sets a password with a link, which is void afterwards, and ends all the member's sign-ins.
    /// Their other credentials stay.
    async fn choose_password(
        &self,
        token: &Secret,
        new: Secret,
        from: RequestOrigin,
    ) -> Result<(), PortalError>;
}

/// A valid account link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailedLink {
    pub email: String,
    pub purpose: LinkPurpose,
}
