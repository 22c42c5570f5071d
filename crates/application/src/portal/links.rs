//! Choosing a password by a link that was mailed.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::{Email, LinkPurpose},
    notice::AccountEvent,
    secret::Secret,
};
use ports::{
    StoreError,
    account_links::{AccountLink, AccountLinkStore},
    account_store::{RequestOrigin, StoredUser, UserStore},
    clock::Clock,
    driving::{LinkService, MailedLink, PortalError},
    tokens::TokenIssuer,
};
use tokio::runtime::Handle;

use super::{AccountLinkIssuer, AccountNotices, AuditTrail, PasswordRules, RequestLimits};
use crate::workers::log_error;

/// Implements [`LinkService`].
pub struct Links {
    pub links: Arc<dyn AccountLinkStore>,
    pub resets: PasswordResets,
    pub tokens: Arc<dyn TokenIssuer>,
    pub passwords: PasswordRules,
    pub limits: RequestLimits,
    pub audit: AuditTrail,
    pub notices: AccountNotices,
    pub clock: Arc<dyn Clock>,
    pub runtime: Handle,
}

/// Enqueues links to members who do not know their password, apart from the requests for them.
#[derive(Clone)]
pub struct PasswordResets {
    pub users: Arc<dyn UserStore>,
    pub issuer: AccountLinkIssuer,
    pub audit: AuditTrail,
}

impl PasswordResets {
    /// Enqueues a link to the member with this address, if there is one.
    async fn enqueue(&self, email: &Email, origin: &RequestOrigin) -> Result<(), StoreError> {
        let Some(account) = self.users.user_by_email(email).await? else { return Ok(()) };
        self.audit.record_for_account(&account, origin, ("password.forget", "")).await?;
        self.issuer.enqueue(account.user.id, LinkPurpose::Reset).await
    }
}

impl Links {
    /// Returns the link that a token opens, and the account that it belongs to.
    async fn open(&self, token: &Secret) -> Result<(AccountLink, StoredUser), PortalError> {
        let Some(id) = self.tokens.verify_account_link_token(token.expose()) else {
            return Err(PortalError::InvalidLink);
        };
        self.links.link(id, self.clock.now()).await?.ok_or(PortalError::InvalidLink)
    }
}

#[async_trait]
impl LinkService for Links {
    async fn forgot_password(
        &self,
        email: String,
        origin: RequestOrigin,
    ) -> Result<(), PortalError> {
        self.limits.count_request(origin.address).await?;
        self.limits.count_mail(&email).await?;
        let Ok(email) = email.parse::<Email>() else { return Ok(()) };
        let resets = self.resets.clone();
        // The answer does not wait: its time must not tell whether an account has the address.
        self.runtime.spawn(async move {
            if let Err(error) = resets.enqueue(&email, &origin).await {
                log_error(&error, "failed to enqueue a link to choose a password");
            }
        });
        Ok(())
    }

    async fn mailed_link(&self, token: &Secret) -> Result<MailedLink, PortalError> {
        let (link, account) = self.open(token).await?;
        Ok(MailedLink { email: account.user.email.to_string(), purpose: link.purpose })
    }

    async fn choose_password(
        &self,
        token: &Secret,
        new: Secret,
        origin: RequestOrigin,
    ) -> Result<(), PortalError> {
        self.limits.count_request(origin.address).await?;
        let (link, account) = self.open(token).await?;
        let hash = self.passwords.hash_chosen(new, account.user.email.as_str()).await?;
        let event = ("password.choose", link.purpose.as_str());
        self.audit.record_for_account(&account, &origin, event).await?;
        if !self.links.use_link(link.id, &hash, self.clock.now()).await? {
            return Err(PortalError::InvalidLink);
        }
        match link.purpose {
            LinkPurpose::Invitation => Ok(()),
            LinkPurpose::Reset => {
                let event = AccountEvent::PasswordChanged;
                Ok(self.notices.notify(account.user.id, event, &origin).await?)
            }
        }
    }
}
