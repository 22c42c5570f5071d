//! A team's people, as the portal shows and changes them.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::{
    account::{Email, LinkPurpose, Permission, Role},
    id::UserId,
    reauthentication::SensitiveAction,
};
use ports::{
    account_store::{MembershipChange, User},
    driving::{Member, NewMember, PortalError, SignedInUser, TeamService},
};
use uuid::Uuid;

use super::People;

/// People of one team.
const MAX_MEMBERS: usize = 200;

#[async_trait]
impl TeamService for People {
    async fn members(&self, visitor: &SignedInUser) -> Result<Vec<Member>, PortalError> {
        visitor.require(Permission::Look)?;
        let links = self.links.links(visitor.team).await?.into_iter();
        let mut links: HashMap<_, _> =
            links.map(|(link, mailed)| (link.user, (mailed, link.expires_at))).collect();
        let users = self.users.users(visitor.team).await?.into_iter();
        Ok(users.map(|user| Member { link: links.remove(&user.id), user }).collect())
    }

    async fn invite(&self, visitor: &SignedInUser, order: NewMember) -> Result<(), PortalError> {
        visitor.require(Permission::Govern)?;
        self.confirmed(visitor, SensitiveAction::Team)?;
        may_appoint(visitor, order.role)?;
        let email = order.email.parse::<Email>();
        let email = email.map_err(|error| PortalError::Invalid(format!("the address {error}")))?;
        let members = self.users.users(visitor.team).await?;
        if members.iter().any(|member| member.email == email) {
            return Err(in_team());
        }
        if members.len() >= MAX_MEMBERS {
            return Err(PortalError::Invalid(format!("a team has up to {MAX_MEMBERS} people")));
        }
        self.charge_mail(email.as_str()).await?;
        let user = User {
            id: UserId::from_uuid(Uuid::from_u128(self.core.random.new_id())),
            team: visitor.team,
            email,
            role: order.role,
            has_password: false,
            has_second_factor: false,
            created_at: self.core.clock.now(),
        };
        let subject = format!("{} as {}", user.email, user.role.as_str());
        self.note(visitor, "person.invite", &subject).await?;
        // The same is done and answered whether another team has somebody of that address or not.
        if !self.invitations.add_invited(&user, user.created_at).await? {
            return Err(in_team());
        }
        self.invitations.claim_address(user.id).await?;
        Ok(self.owe_link(user.id, LinkPurpose::Invitation).await?)
    }

    async fn invite_again(&self, visitor: &SignedInUser, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        if user.has_password {
            return Err(PortalError::Invalid("they have chosen a password already".into()));
        }
        self.charge_mail(user.email.as_str()).await?;
        self.note(visitor, "person.invite-again", user.email.as_str()).await?;
        // Whoever had the address before may be gone.
        self.invitations.claim_address(id).await?;
        Ok(self.owe_link(id, LinkPurpose::Invitation).await?)
    }

    async fn appoint(
        &self,
        visitor: &SignedInUser,
        id: UserId,
        role: Role,
    ) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        may_appoint(visitor, role)?;
        let subject = format!("{} as {}", user.email, role.as_str());
        self.note(visitor, "person.appoint", &subject).await?;
        changed(self.users.set_role(visitor.team, id, role).await?)
    }

    async fn sign_out_member(&self, visitor: &SignedInUser, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        self.note(visitor, "person.sign-out", user.email.as_str()).await?;
        self.sign_ins.end_other_sign_ins(id, None).await?;
        Ok(())
    }

    async fn requires_second_factor(&self, visitor: &SignedInUser) -> Result<bool, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.users.requires_second_factor(visitor.team).await?)
    }

    async fn require_second_factor(
        &self,
        visitor: &SignedInUser,
        required: bool,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Govern)?;
        self.confirmed(visitor, SensitiveAction::Team)?;
        let subject = if required { "required" } else { "optional" };
        self.note(visitor, "team.second-factor", subject).await?;
        Ok(self.users.require_second_factor(visitor.team, required).await?)
    }

    async fn remove(&self, visitor: &SignedInUser, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        self.note(visitor, "person.remove", user.email.as_str()).await?;
        changed(self.users.remove_user(visitor.team, id).await?)
    }
}

fn in_team() -> PortalError {
    PortalError::Invalid("somebody with that address is in your team already".to_owned())
}

fn may_appoint(visitor: &SignedInUser, role: Role) -> Result<(), PortalError> {
    if visitor.role.may_appoint(role) { Ok(()) } else { Err(PortalError::Forbidden) }
}

fn changed(change: MembershipChange) -> Result<(), PortalError> {
    match change {
        MembershipChange::Done => Ok(()),
        MembershipChange::Nobody => Err(PortalError::NotFound("person")),
        MembershipChange::Last => {
            let why = "somebody has to be left who is an owner and can sign in";
            Err(PortalError::Invalid(why.into()))
        }
    }
}

impl People {
    /// Somebody of the visitor's team who is no mightier than the visitor.
    async fn team_user(&self, visitor: &SignedInUser, id: UserId) -> Result<User, PortalError> {
        visitor.require(Permission::Govern)?;
        self.confirmed(visitor, SensitiveAction::Team)?;
        let kept = self.users.user(id).await?.filter(|kept| kept.user.team == visitor.team);
        let user = kept.ok_or(PortalError::NotFound("person"))?.user;
        may_appoint(visitor, user.role)?;
        Ok(user)
    }
}
