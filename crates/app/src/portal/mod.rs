//! The use cases of the portal. Each asks for a right first, and writes down what is done before it
//! is done: nothing happens that the log does not know.

mod accounts;
mod factor;
mod keys;
mod sessions;
mod whole;

use std::sync::Arc;

use adapters::{
    credentials::{Argon2Passwords, TotpCodes},
    diesel::Store,
    seal::Seal,
};
use async_trait::async_trait;
use domain::{
    account::Right,
    audit::{AuditEntry, Deed},
};
use ports::{
    StoreError,
    account_store::{SignInStore, UserStore},
    audit_log::AuditLog,
    catalogue::Catalogue,
    clock::{Chance, Clock},
    credentials::{OneTimeCodes, Passwords},
    driving::{AuditService, PortalError, SessionService, Visitor},
    key_store::KeyStore,
    rate_limiter::RateLimiter,
    session_store::SessionStore,
};
use tokio::runtime::Handle;

use crate::{
    advance::Core,
    config::Config,
    kept::{Failure, derive, explain},
    whole::Whole,
};

/// Entries of the log on one page.
const AUDIT_PAGE: u16 = 50;

/// What people do in the portal.
pub(crate) struct People {
    pub(crate) users: Arc<dyn UserStore>,
    pub(crate) sign_ins: Arc<dyn SignInStore>,
    pub(crate) audit: Arc<dyn AuditLog>,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) catalogue: Arc<dyn Catalogue>,
    pub(crate) partners: Arc<dyn SessionService>,
    pub(crate) passwords: Arc<dyn Passwords>,
    pub(crate) codes: Arc<dyn OneTimeCodes>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn Chance>,
    /// Closes what a form carries to the next one.
    pub(crate) seal: Seal,
}

impl People {
    pub(crate) fn open(
        key: &[u8; 32],
        core: &Core,
        store: &Arc<Store>,
        limiter: &Arc<dyn RateLimiter>,
        partners: Arc<dyn SessionService>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            users: store.clone(),
            sign_ins: store.clone(),
            audit: store.clone(),
            keys: store.clone(),
            sessions: store.clone(),
            catalogue: store.clone(),
            partners,
            passwords: Arc::new(Argon2Passwords::new().map_err(explain)?),
            codes: Arc::new(TotpCodes),
            limiter: limiter.clone(),
            clock: core.clock.clone(),
            chance: core.chance.clone(),
            seal: Seal::new(&derive(key, "portal")),
        })
    }

    /// What the portal's pages call: use cases that are carried out whole.
    pub(crate) fn pages(runtime: &Handle, people: &Arc<Self>, config: &Config) -> portal::Portal {
        let whole = Whole::new(runtime, people.clone());
        portal::Portal {
            accounts: whole.clone(),
            keys: whole.clone(),
            sessions: whole.clone(),
            audit: whole,
            clock: people.clock.clone(),
            origin: config.addresses.public.clone(),
        }
    }

    async fn note(&self, who: &Visitor, action: &str, subject: &str) -> Result<(), StoreError> {
        let deed = Deed::new(self.clock.now(), &who.email, action, subject);
        self.audit.note(who.team, &deed.from(who.from.address)).await
    }
}

#[async_trait]
impl AuditService for People {
    async fn audit(
        &self,
        visitor: &Visitor,
        before: Option<i64>,
    ) -> Result<Vec<AuditEntry>, PortalError> {
        visitor.must(Right::Govern)?;
        Ok(self.audit.entries(visitor.team, before, AUDIT_PAGE).await?)
    }
}
