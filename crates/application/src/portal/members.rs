//! The members of a team.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use domain::{
    account::{Email, LinkPurpose, Permission, Role},
    id::UserId,
    reauthentication::SensitiveAction,
};
use ports::{
    account_links::AccountLinkStore,
    account_store::{MembershipChange, SignInStore, TeamMembers, User, UserStore},
    clock::Clock,
    driving::{Member, NewMember, PortalError, SignedInUser, TeamService},
    invitations::InvitationStore,
    key_store::TeamStore,
    random::RandomSource,
};

use super::{AccountLinkIssuer, AuditTrail, RequestLimits};

/// The members that a team has at once, invited ones included.
const MAX_MEMBERS: usize = 200;

/// Implements [`TeamService`].
pub struct Members {
    pub users: Arc<dyn UserStore>,
    pub members: Arc<dyn TeamMembers>,
    pub teams: Arc<dyn TeamStore>,
    /// Whether browsers run in regions.
    pub has_regions: bool,
    pub sign_ins: Arc<dyn SignInStore>,
    pub invitations: Arc<dyn InvitationStore>,
    pub links: Arc<dyn AccountLinkStore>,
    pub issuer: AccountLinkIssuer,
    pub limits: RequestLimits,
    pub audit: AuditTrail,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl TeamService for Members {
    async fn members(&self, user: &SignedInUser) -> Result<Vec<Member>, PortalError> {
        user.require(Permission::View)?;
        let links = self.links.links(user.team).await?.into_iter();
        let mut links: HashMap<_, _> =
            links.map(|(link, mailed)| (link.user, (mailed, link.expires_at))).collect();
        let users = self.members.users(user.team).await?.into_iter();
        Ok(users.map(|user| Member { link: links.remove(&user.id), user }).collect())
    }

    async fn invite(&self, user: &SignedInUser, new: NewMember) -> Result<(), PortalError> {
        self.require_to_change(user)?;
        require_to_appoint(user, new.role)?;
        let email = new.email.parse::<Email>();
        let email =
            email.map_err(|_| PortalError::Invalid("enter a valid email address".to_owned()))?;
        let members = self.members.users(user.team).await?;
        if members.iter().any(|member| member.email == email) {
            return Err(already_in_team());
        }
        if members.len() >= MAX_MEMBERS {
            return Err(PortalError::Invalid(format!(
                "a team can have up to {MAX_MEMBERS} members"
            )));
        }
        self.limits.count_mail(email.as_str()).await?;
        let member = User {
            id: UserId::from_u128(self.random.new_id()),
            team: user.team,
            email,
            role: new.role,
            has_password: false,
            has_second_factor: false,
            created_at: self.clock.now(),
        };
        let subject = format!("{} as {}", member.email, member.role.as_str());
        self.audit.record(user, "person.invite", &subject).await?;
        // The steps and the answer are the same whether a member of another team has this address
        // or not: a team learns nothing about others.
        if !self.invitations.add_invited(&member, member.created_at).await? {
            return Err(already_in_team());
        }
        self.invitations.claim_address(member.id).await?;
        Ok(self.issuer.enqueue(member.id, LinkPurpose::Invitation).await?)
    }

    async fn invite_again(&self, user: &SignedInUser, id: UserId) -> Result<(), PortalError> {
        let member = self.team_member(user, id, Role::may_appoint).await?;
        if member.has_password {
            return Err(PortalError::Invalid(
                "this member has already accepted the invitation".into(),
            ));
        }
        self.limits.count_mail(member.email.as_str()).await?;
        self.audit.record(user, "person.invite-again", member.email.as_str()).await?;
        // The account that had the address at the first invitation may be gone.
        self.invitations.claim_address(id).await?;
        Ok(self.issuer.enqueue(id, LinkPurpose::Invitation).await?)
    }

    async fn appoint(
        &self,
        user: &SignedInUser,
        id: UserId,
        role: Role,
    ) -> Result<(), PortalError> {
        let member = self.team_member(user, id, Role::may_appoint).await?;
        require_to_appoint(user, role)?;
        let subject = format!("{} as {}", member.email, role.as_str());
        self.audit.record(user, "person.appoint", &subject).await?;
        outcome(self.members.set_role(user.team, id, role).await?)
    }

    async fn sign_out_member(&self, user: &SignedInUser, id: UserId) -> Result<(), PortalError> {
        let member = self.team_member(user, id, Role::may_remove).await?;
        self.audit.record(user, "person.sign-out", member.email.as_str()).await?;
        self.sign_ins.end_other_sign_ins(id, None).await?;
        Ok(())
    }

    async fn requires_second_factor(&self, user: &SignedInUser) -> Result<bool, PortalError> {
        user.require(Permission::View)?;
        Ok(self.members.requires_second_factor(user.team).await?)
    }

    async fn require_second_factor(
        &self,
        user: &SignedInUser,
        required: bool,
    ) -> Result<(), PortalError> {
        self.require_to_change(user)?;
        let subject = if required { "required" } else { "optional" };
        self.audit.record(user, "team.second-factor", subject).await?;
        Ok(self.members.require_second_factor(user.team, required).await?)
    }

    async fn allows_other_regions(&self, user: &SignedInUser) -> Result<Option<bool>, PortalError> {
        user.require(Permission::View)?;
        if !self.has_regions {
            return Ok(None);
        }
        Ok(Some(self.teams.other_regions(user.team).await?))
    }

    async fn allow_other_regions(
        &self,
        user: &SignedInUser,
        allowed: bool,
    ) -> Result<(), PortalError> {
        self.require_to_change(user)?;
        let subject = if allowed { "allowed" } else { "refused" };
        self.audit.record(user, "team.other-regions", subject).await?;
        self.teams.set_other_regions(user.team, allowed).await?;
        Ok(())
    }

    async fn remove(&self, user: &SignedInUser, id: UserId) -> Result<(), PortalError> {
        let member = self.team_member(user, id, Role::may_remove).await?;
        self.audit.record(user, "person.remove", member.email.as_str()).await?;
        outcome(self.members.remove_user(user.team, id).await?)
    }
}

impl Members {
    fn require_to_change(&self, user: &SignedInUser) -> Result<(), PortalError> {
        user.require(Permission::ManageTeam)?;
        user.require_reauthentication(SensitiveAction::Team, self.clock.now())
    }

    /// Returns a member of the user's team whose role the user's own may change, for a user who may
    /// change members.
    async fn team_member(
        &self,
        user: &SignedInUser,
        id: UserId,
        may_change: fn(Role, Role) -> bool,
    ) -> Result<User, PortalError> {
        self.require_to_change(user)?;
        let stored = self.users.user(id).await?.filter(|stored| stored.user.team == user.team);
        let member = stored.ok_or(PortalError::NotFound("member"))?.user;
        if may_change(user.role, member.role) { Ok(member) } else { Err(PortalError::Forbidden) }
    }
}

fn already_in_team() -> PortalError {
    PortalError::Invalid("this email already belongs to a member of your team".to_owned())
}

fn require_to_appoint(user: &SignedInUser, role: Role) -> Result<(), PortalError> {
    if user.role.may_appoint(role) { Ok(()) } else { Err(PortalError::Forbidden) }
}

fn outcome(change: MembershipChange) -> Result<(), PortalError> {
    match change {
        MembershipChange::Done => Ok(()),
        MembershipChange::Nobody => Err(PortalError::NotFound("member")),
        MembershipChange::Last => {
            let why = "a team must have at least one owner who can sign in";
            Err(PortalError::Invalid(why.into()))
        }
    }
}
