//! Who is in a team, and how people come in.

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

/// A team's people.
#[async_trait]
pub trait TeamService: Send + Sync {
    /// By their addresses.
    async fn members(&self, visitor: &SignedInUser) -> Result<Vec<Member>, PortalError>;

    /// Takes somebody into the team and mails them a link to choose a password.
    async fn invite(&self, visitor: &SignedInUser, order: NewMember) -> Result<(), PortalError>;

    /// Mails another link to somebody who has not chosen a password yet; the one before opens
    /// nothing any more.
    async fn invite_again(&self, visitor: &SignedInUser, id: UserId) -> Result<(), PortalError>;

    /// Gives somebody another role, from their next request on.
    async fn appoint(
        &self,
        visitor: &SignedInUser,
        id: UserId,
        role: Role,
    ) -> Result<(), PortalError>;

    /// Ends all of somebody's sign-ins.
    async fn sign_out_member(&self, visitor: &SignedInUser, id: UserId) -> Result<(), PortalError>;

    /// Whether all of the team's people have to have a second factor.
    async fn requires_second_factor(&self, visitor: &SignedInUser) -> Result<bool, PortalError>;

    /// Says whether they have to. Those who have none set one up before anything else is open to
    /// them, from their next request on.
    async fn require_second_factor(
        &self,
        visitor: &SignedInUser,
        required: bool,
    ) -> Result<(), PortalError>;

    /// Takes somebody out of the team, and out of the portal.
    async fn remove(&self, visitor: &SignedInUser, id: UserId) -> Result<(), PortalError>;
}

/// Somebody to be invited.
pub struct NewMember {
    pub email: String,
    pub role: Role,
}

/// Somebody of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub user: User,
    /// A link that they have: what became of its mail, and until when it opens something.
    pub link: Option<(Mailed, DateTime<Utc>)>,
}

/// Choosing a password by a link that was mailed.
#[async_trait]
pub trait LinkService: Send + Sync {
    /// Mails a link to whoever has this address. Answers the same where nobody has it.
    async fn forgot_password(&self, email: String, from: RequestOrigin) -> Result<(), PortalError>;

    /// Whose link it is.
    ///
    /// # Errors
    /// [`PortalError::NotFound`]: it is none of ours, ran out, or was used.
    async fn mailed_link(&self, token: &Secret) -> Result<MailedLink, PortalError>;

    /// Chooses a password by a link, which opens nothing afterwards, and ends all of the person's
    /// sign-ins. What else they sign in with stays.
    async fn choose_password(
        &self,
        token: &Secret,
        new: Secret,
        from: RequestOrigin,
    ) -> Result<(), PortalError>;
}

/// A link that opens something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailedLink {
    pub email: String,
    pub purpose: LinkPurpose,
}
