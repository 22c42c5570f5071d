//! The use cases of the portal. Each asks for a right first, and writes down what is done before it
//! is done: nothing happens that the log does not know.

mod accounts;
mod attempts;
mod audit;
mod branding;
mod confirmation;
mod embedding;
mod factor;
mod identity;
mod keys;
mod links;
mod overview;
mod passkeys;
mod receivers;
mod recorded;
mod sessions;
mod team;
mod templates;
mod webhooks;

use std::sync::Arc;

use domain::{audit::Deed, fairness::Quotas};
use ports::{
    StoreError,
    account_links::AccountLinkStore,
    account_store::{SignInStore, UserStore},
    attempts::AttemptLimiter,
    audit_log::AuditLog,
    brand_store::BrandStore,
    catalogue::Catalogue,
    credentials::{OneTimeCodes, Passwords},
    driving::{SessionService, Visitor},
    encryption::Cipher,
    identity::IdentityProvider,
    invitations::InvitationStore,
    key_store::KeyStore,
    known_browsers::KnownBrowserStore,
    notice_store::NoticeStore,
    notifier::Stationery,
    passkeys::{PasskeyStore, Passkeys},
    rate_limiter::RateLimiter,
    receiver_store::ReceiverStore,
    session_store::SessionStore,
    template_store::TemplateStore,
};

pub use self::accounts::half_hash;
use crate::{
    advance::Core,
    settings::{Limits, SignIns},
    webhooks::Webhooks,
};

/// What people do in the portal.
pub struct People {
    pub core: Arc<Core>,
    pub users: Arc<dyn UserStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub links: Arc<dyn AccountLinkStore>,
    pub notices: Arc<dyn NoticeStore>,
    pub invitations: Arc<dyn InvitationStore>,
    pub audit: Arc<dyn AuditLog>,
    pub keys: Arc<dyn KeyStore>,
    pub sessions: Arc<dyn SessionStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub partners: Arc<dyn SessionService>,
    pub webhooks: Webhooks,
    pub receivers: Arc<dyn ReceiverStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub stationery: Arc<dyn Stationery>,
    pub passwords: Arc<dyn Passwords>,
    pub codes: Arc<dyn OneTimeCodes>,
    pub passkeys: Arc<dyn PasskeyStore>,
    pub identities: Option<Arc<dyn IdentityProvider>>,
    /// None where the deployment has no host name.
    pub party: Option<Arc<dyn Passkeys>>,
    pub browsers: Arc<dyn KnownBrowserStore>,
    pub limiter: Arc<dyn RateLimiter>,
    pub attempts: Arc<dyn AttemptLimiter>,
    pub rules: SignIns,
    pub limits: Limits,
    pub quotas: Quotas,
    /// Closes what a form carries to the next one.
    pub cipher: Arc<dyn Cipher>,
}

impl People {
    async fn note(&self, who: &Visitor, action: &str, subject: &str) -> Result<(), StoreError> {
        let deed = Deed::new(self.core.clock.now(), &who.email, action, subject);
        self.audit.note(who.team, &deed.from(who.from.address)).await
    }
}
