//! The use cases of the portal. Each asks for a right first, and writes down what is done before it
//! is done: nothing happens that the log does not know.

mod accounts;
mod attempts;
mod audit;
mod branding;
mod contacts;
mod embedding;
mod identity;
mod keys;
mod links;
mod overview;
mod passkeys;
mod reauthentication;
mod sessions;
mod sign_in_log;
mod team;
mod templates;
mod totp;
mod webhooks;

use std::sync::Arc;

use domain::{audit::AuditEvent, fairness::Quotas};
use ports::{
    StoreError,
    account_links::AccountLinkStore,
    account_store::{SignInStore, UserStore},
    attempts::AttemptLimiter,
    audit_log::AuditLog,
    brand_store::BrandStore,
    catalogue::Catalogue,
    contact_store::ContactStore,
    credentials::{PasswordHasher, TotpVerifier},
    driving::{SessionService, SignedInUser},
    encryption::Cipher,
    identity::IdentityProvider,
    invitations::InvitationStore,
    key_store::KeyStore,
    known_browsers::KnownBrowserStore,
    notice_store::NoticeStore,
    notifier::MailRenderer,
    passkeys::{PasskeyStore, PasskeyVerifier},
    rate_limiter::RateLimiter,
    session_store::SessionStore,
    template_store::TemplateStore,
};

pub use self::accounts::account_key;
use crate::{
    advance::Core,
    settings::{Limits, SignInPolicy},
    webhooks::WebhookUseCases,
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
    pub webhooks: WebhookUseCases,
    pub receivers: Arc<dyn ContactStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub stationery: Arc<dyn MailRenderer>,
    pub passwords: Arc<dyn PasswordHasher>,
    pub codes: Arc<dyn TotpVerifier>,
    pub passkeys: Arc<dyn PasskeyStore>,
    pub identities: Option<Arc<dyn IdentityProvider>>,
    /// None where the deployment has no host name.
    pub party: Option<Arc<dyn PasskeyVerifier>>,
    pub browsers: Arc<dyn KnownBrowserStore>,
    pub limiter: Arc<dyn RateLimiter>,
    pub attempts: Arc<dyn AttemptLimiter>,
    pub rules: SignInPolicy,
    pub limits: Limits,
    pub quotas: Quotas,
    /// Closes what a form carries to the next one.
    pub cipher: Arc<dyn Cipher>,
}

impl People {
    async fn note(
        &self,
        who: &SignedInUser,
        action: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        let deed = AuditEvent::new(self.core.clock.now(), &who.email, action, subject);
        self.audit.note(who.team, &deed.from(who.from.address)).await
    }
}
