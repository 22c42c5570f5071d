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
        if self.users.users(visitor.team).await?.len() >= MOST_MEMBERS {
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
        if !self.users.add_user(&user, None, user.created_at).await? {
            return Err(PortalError::Invalid("somebody has that address already".into()));
        }
        Ok(self.owe_link(user.id, Purpose::Invitation).await?)
    }

    async fn invite_again(&self, visitor: &Visitor, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        if user.has_password {
            return Err(PortalError::Invalid("they have chosen a password already".into()));
        }
        self.charge_mail(user.email.as_str()).await?;
        self.note(visitor, "person.invite-again", user.email.as_str()).await?;
        Ok(self.owe_link(id, Purpose::Invitation).await?)
    }

    async fn appoint(&self, visitor: &Visitor, id: UserId, role: Role) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        may_appoint(visitor, role)?;
        let subject = format!("{} as {}", user.email, role.as_str());
        self.note(visitor, "person.appoint", &subject).await?;
        changed(self.users.set_role(visitor.team, id, role).await?)
    }

    async fn remove(&self, visitor: &Visitor, id: UserId) -> Result<(), PortalError> {
        let user = self.team_user(visitor, id).await?;
        self.note(visitor, "person.remove", user.email.as_str()).await?;
        changed(self.users.remove_user(visitor.team, id).await?)
    }
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
