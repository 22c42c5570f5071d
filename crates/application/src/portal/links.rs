//! Choosing a password by a link that was mailed.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::{Email, LinkPurpose, PasswordRejected, check_password},
    audit::AuditEvent,
    id::{AccountLinkId, UserId},
    notice::AccountEvent,
    rate::RateLimit,
    secret::Secret,
};
use ports::account_store::RequestOrigin;
use ports::{
    StoreError,
    account_links::{AccountLink, AccountLinkStore},
    account_store::{PasswordHash, StoredUser, UserStore},
    audit_log::AuditLog,
    driving::{LinkService, MailedLink, PortalError},
    rate_limiter::{Charge, Subject},
};
use uuid::Uuid;

use super::{People, accounts::LIMIT_PER_ADDRESS};
use crate::{advance::Core, workers::log_error};

/// Mails with links to one address, whoever asks for them.
const MAIL_LIMIT: RateLimit = RateLimit { count: 5, seconds: 3600 };

#[async_trait]
impl LinkService for People {
    async fn forgot_password(&self, email: String, from: RequestOrigin) -> Result<(), PortalError> {
        self.charge_one(Subject::SignIns(from.address), LIMIT_PER_ADDRESS).await?;
        self.charge_mail(&email).await?;
        let Ok(email) = email.parse::<Email>() else { return Ok(()) };
        let reset = PasswordReset {
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
        from: RequestOrigin,
    ) -> Result<(), PortalError> {
        self.charge_one(Subject::SignIns(from.address), LIMIT_PER_ADDRESS).await?;
        let (link, kept) = self.open_link(token).await?;
        let email = kept.user.email.as_str();
        let hash = self.good_password(new, email).await?;
        let now = self.core.clock.now();
        let deed = AuditEvent::new(now, email, "password.choose", link.purpose.as_str());
        self.audit.note(kept.user.team, &deed.from(from.address)).await?;
        if !self.links.use_link(link.id, &hash, now).await? {
            return Err(PortalError::NotFound("link"));
        }
        match link.purpose {
            LinkPurpose::Invitation => Ok(()),
            LinkPurpose::Reset => {
                Ok(self.tell(kept.user.id, AccountEvent::PasswordChanged, &from).await?)
            }
        }
    }
}

/// What it takes to mail somebody a link, apart from the request that asked for it.
struct PasswordReset {
    core: Arc<Core>,
    users: Arc<dyn UserStore>,
    links: Arc<dyn AccountLinkStore>,
    audit: Arc<dyn AuditLog>,
}

impl PasswordReset {
    async fn owe(&self, email: &Email, from: &RequestOrigin) -> Result<(), StoreError> {
        let Some(kept) = self.users.user_by_email(email).await? else { return Ok(()) };
        let deed = AuditEvent::new(self.core.clock.now(), email.as_str(), "password.forget", "");
        self.audit.note(kept.user.team, &deed.from(from.address)).await?;
        self.links.enqueue_link(&link(&self.core, kept.user.id, LinkPurpose::Reset)).await
    }
}

fn link(core: &Core, user: UserId, purpose: LinkPurpose) -> AccountLink {
    let now = core.clock.now();
    AccountLink {
        id: AccountLinkId::from_uuid(Uuid::from_u128(core.random.new_id())),
        user,
        purpose,
        created_at: now,
        expires_at: now + purpose.ttl(),
    }
}

impl People {
    pub(super) async fn owe_link(
        &self,
        user: UserId,
        purpose: LinkPurpose,
    ) -> Result<(), StoreError> {
        self.links.enqueue_link(&link(&self.core, user, purpose)).await
    }

    /// Counts a mail to an address.
    pub(super) async fn charge_mail(&self, email: &str) -> Result<(), PortalError> {
        self.charge_one(Subject::Mails(super::accounts::account_key(email)), MAIL_LIMIT).await
    }

    pub(super) async fn charge_one(
        &self,
        subject: Subject,
        limit: RateLimit,
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
            return Err(PasswordRejected::Frequent.into());
        }
        let words = vec![email.to_owned(), "avouch".to_owned()];
        if self.passwords.is_guessable(new.clone(), words).await {
            return Err(PasswordRejected::Guessable.into());
        }
        Ok(self.passwords.hash(new).await?)
    }

    async fn open_link(&self, token: &Secret) -> Result<(AccountLink, StoredUser), PortalError> {
        let absent = PortalError::NotFound("link, or it was used, or has run out");
        let Some(id) = self.core.tokens.verify_account_link_token(token.expose()) else {
            return Err(absent);
        };
        self.links.link(id, self.core.clock.now()).await?.ok_or(absent)
    }
}
