//! Choosing a password by a link that was mailed.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::{BadPassword, Email, Purpose, check_password},
    audit::Deed,
    id::{AccountLinkId, UserId},
    notice::AccountEvent,
    rate::Limit,
    secret::Secret,
};
use ports::account_store::Whence;
use ports::{
    StoreError,
    account_links::{AccountLink, AccountLinkStore},
    account_store::{KeptUser, PasswordHash, UserStore},
    audit_log::AuditLog,
    driving::{LinkService, MailedLink, PortalError},
    rate_limiter::{Charge, Subject},
};
use uuid::Uuid;

use super::{People, accounts::FROM_AN_ADDRESS};
use crate::{advance::Core, workers::log_error};

/// Mails with links to one address, whoever asks for them.
const MAILS: Limit = Limit { count: 5, seconds: 3600 };

#[async_trait]
impl LinkService for People {
    async fn forgot_password(&self, email: String, from: Whence) -> Result<(), PortalError> {
        self.charge_one(Subject::SignIns(from.address), FROM_AN_ADDRESS).await?;
        self.charge_mail(&email).await?;
        let Ok(email) = email.parse::<Email>() else { return Ok(()) };
        let reset = Reset {
            core: self.core.clone(),
            users: self.users.clone(),
            links: self.links.clone(),
            audit: self.audit.clone(),
        };
        // Nobody can tell from how long it takes whether somebody has the address.
        self.core.runtime.spawn(async move {
            if let Err(error) = reset.owe(&email, &from).await {
                log_error(&error, "failed to enqueue a link to choose a password");
            }
        });
        Ok(())
    }

    async fn mailed_link(&self, token: &Secret) -> Result<MailedLink, PortalError> {
        let (link, kept) = self.open_link(token).await?;
        Ok(MailedLink { email: kept.user.email.to_string(), purpose: link.purpose })
    }

    async fn choose_password(
        &self,
        token: &Secret,
        new: Secret,
        from: Whence,
    ) -> Result<(), PortalError> {
        self.charge_one(Subject::SignIns(from.address), FROM_AN_ADDRESS).await?;
        let (link, kept) = self.open_link(token).await?;
        let email = kept.user.email.as_str();
        let hash = self.good_password(new, email).await?;
        let now = self.core.clock.now();
        let deed = Deed::new(now, email, "password.choose", link.purpose.as_str());
        self.audit.note(kept.user.team, &deed.from(from.address)).await?;
        if !self.links.use_link(link.id, &hash, now).await? {
            return Err(PortalError::NotFound("link"));
        }
        match link.purpose {
            Purpose::Invitation => Ok(()),
            Purpose::Reset => {
                Ok(self.tell(kept.user.id, AccountEvent::PasswordChanged, &from).await?)
            }
        }
    }
}

/// What it takes to mail somebody a link, apart from the request that asked for it.
struct Reset {
    core: Arc<Core>,
    users: Arc<dyn UserStore>,
    links: Arc<dyn AccountLinkStore>,
    audit: Arc<dyn AuditLog>,
}

impl Reset {
    async fn owe(&self, email: &Email, from: &Whence) -> Result<(), StoreError> {
        let Some(kept) = self.users.user_by_email(email).await? else { return Ok(()) };
        let deed = Deed::new(self.core.clock.now(), email.as_str(), "password.forget", "");
        self.audit.note(kept.user.team, &deed.from(from.address)).await?;
        self.links.owe_link(&link(&self.core, kept.user.id, Purpose::Reset)).await
    }
}

fn link(core: &Core, user: UserId, purpose: Purpose) -> AccountLink {
    let now = core.clock.now();
    AccountLink {
        id: AccountLinkId::from_uuid(Uuid::from_u128(core.chance.id())),
        user,
        purpose,
        created_at: now,
        expires_at: now + purpose.lasts(),
    }
}

impl People {
    pub(super) async fn owe_link(&self, user: UserId, purpose: Purpose) -> Result<(), StoreError> {
        self.links.owe_link(&link(&self.core, user, purpose)).await
    }

    /// Counts a mail to an address.
    pub(super) async fn charge_mail(&self, email: &str) -> Result<(), PortalError> {
        self.charge_one(Subject::Mails(super::accounts::half_hash(email)), MAILS).await
    }

    pub(super) async fn charge_one(
        &self,
        subject: Subject,
        limit: Limit,
    ) -> Result<(), PortalError> {
        let now = self.core.clock.now();
        let windows = self.limiter.charge(&[Charge { subject, limit }], now).await;
        match windows.iter().find(|window| !window.admits()) {
            Some(full) => Err(PortalError::TooMany { retry_after: full.retry_after(now) }),
            None => Ok(()),
        }
    }

    /// What is kept of a password that somebody of this address may choose.
    pub(super) async fn good_password(
        &self,
        new: Secret,
        email: &str,
    ) -> Result<PasswordHash, PortalError> {
        check_password(&new)?;
        if self.passwords.is_frequent(&new) {
            return Err(BadPassword::Frequent.into());
        }
        let words = vec![email.to_owned(), "avouch".to_owned()];
        if self.passwords.is_guessable(new.clone(), words).await {
            return Err(BadPassword::Guessable.into());
        }
        Ok(self.passwords.hash(new).await?)
    }

    async fn open_link(&self, token: &Secret) -> Result<(AccountLink, KeptUser), PortalError> {
        let absent = PortalError::NotFound("link, or it was used, or has run out");
        let Some(id) = self.core.tokens.link_of(token.expose()) else { return Err(absent) };
        self.links.link(id, self.core.clock.now()).await?.ok_or(absent)
    }
}
