//! A team's people, as the portal shows and changes them.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::{
    account::{Email, Purpose, Right, Role},
    confirmation::Sensitive,
    id::UserId,
};
use ports::{
    account_store::{Change, User},
    driving::{Member, NewMember, PortalError, TeamService, Visitor},
};
use uuid::Uuid;

use super::People;

/// People of one team.
const MOST_MEMBERS: usize = 200;

#[async_trait]
impl TeamService for People {
    async fn members(&self, visitor: &Visitor) -> Result<Vec<Member>, PortalError> {
        visitor.must(Right::Look)?;
        let links = self.links.links(visitor.team).await?.into_iter();
        let mut links: HashMap<_, _> =
            links.map(|(link, mailed)| (link.user, (mailed, link.expires_at))).collect();
        let users = self.users.users(visitor.team).await?.into_iter();
        Ok(users.map(|user| Member { link: links.remove(&user.id), user }).collect())
    }

    async fn invite(&self, visitor: &Visitor, order: NewMember) -> Result<(), PortalError> {
        visitor.must(Right::Govern)?;
        self.confirmed(visitor, Sensitive::Team)?;
        may_appoint(visitor, order.role)?;
        let email = order.email.parse::<Email>();
        let email = email.map_err(|error| PortalError::Invalid(format!("the address {error}")))?;
        let members = self.users.users(visitor.team).await?;
        if members.iter().any(|member| member.email == email) {
            return Err(in_team());
        }
        if members.len() >= MOST_MEMBERS {
            return Err(PortalError::Invalid(format!("a team has up to {MOST_MEMBERS} people")));
        }
        self.charge_mail(email.as_str()).await?;
        let user = User {
            id: UserId::from_uuid(Uuid::from_u128(self.core.chance.id())),
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
        Ok(self.owe_link(user.id, Purpose::Invitation).await?)
    }

    async fn invite_again(&self, visitor: &Visitor, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        if user.has_password {
            return Err(PortalError::Invalid("they have chosen a password already".into()));
        }
        self.charge_mail(user.email.as_str()).await?;
        self.note(visitor, "person.invite-again", user.email.as_str()).await?;
        // Whoever had the address before may be gone.
        self.invitations.claim_address(id).await?;
        Ok(self.owe_link(id, Purpose::Invitation).await?)
    }

    async fn appoint(&self, visitor: &Visitor, id: UserId, role: Role) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        may_appoint(visitor, role)?;
        let subject = format!("{} as {}", user.email, role.as_str());
        self.note(visitor, "person.appoint", &subject).await?;
        changed(self.users.set_role(visitor.team, id, role).await?)
    }

    async fn sign_out_member(&self, visitor: &Visitor, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        self.note(visitor, "person.sign-out", user.email.as_str()).await?;
        self.sign_ins.end_other_sign_ins(id, None).await?;
        Ok(())
    }

    async fn requires_second_factor(&self, visitor: &Visitor) -> Result<bool, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.users.requires_second_factor(visitor.team).await?)
    }

    async fn require_second_factor(
        &self,
        visitor: &Visitor,
        required: bool,
    ) -> Result<(), PortalError> {
        visitor.must(Right::Govern)?;
        self.confirmed(visitor, Sensitive::Team)?;
        let subject = if required { "required" } else { "optional" };
        self.note(visitor, "team.second-factor", subject).await?;
        Ok(self.users.require_second_factor(visitor.team, required).await?)
    }

    async fn remove(&self, visitor: &Visitor, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        self.note(visitor, "person.remove", user.email.as_str()).await?;
        changed(self.users.remove_user(visitor.team, id).await?)
    }
}

fn in_team() -> PortalError {
    PortalError::Invalid("somebody with that address is in your team already".to_owned())
}

fn may_appoint(visitor: &Visitor, role: Role) -> Result<(), PortalError> {
    if visitor.role.may_appoint(role) { Ok(()) } else { Err(PortalError::Forbidden) }
}

fn changed(change: Change) -> Result<(), PortalError> {
    match change {
        Change::Done => Ok(()),
        Change::Nobody => Err(PortalError::NotFound("person")),
        Change::Last => {
            let why = "somebody has to be left who is an owner and can sign in";
            Err(PortalError::Invalid(why.into()))
        }
    }
}

impl People {
    /// Somebody of the visitor's team who is no mightier than the visitor.
    async fn team_user(&self, visitor: &Visitor, id: UserId) -> Result<User, PortalError> {
        visitor.must(Right::Govern)?;
        self.confirmed(visitor, Sensitive::Team)?;
        let kept = self.users.user(id).await?.filter(|kept| kept.user.team == visitor.team);
        let user = kept.ok_or(PortalError::NotFound("person"))?.user;
        may_appoint(visitor, user.role)?;
        Ok(user)
    }
}
