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
mod whole;

use std::sync::Arc;

use ::identity::OidcProvider;
use ::passkeys::RelyingParty;
use adapters::{
    credentials::{Argon2Passwords, TotpCodes},
    diesel::Store,
    seal::{Seal, SealKeys},
};
use calls::HttpClient;
use domain::{audit::Deed, fairness::Quotas};
use notify::MailTemplates;
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
use tokio::runtime::Handle;
use url::Url;

pub(crate) use self::accounts::half_hash;
use crate::{
    advance::Core,
    config::{Config, Limits, SignIns},
    kept::{Failure, explain},
    limiters::Limiters,
    secret_key::Keys,
    webhooks::Webhooks,
    whole::Whole,
};

/// What people do in the portal.
pub(crate) struct People {
    pub(crate) core: Arc<Core>,
    pub(crate) users: Arc<dyn UserStore>,
    pub(crate) sign_ins: Arc<dyn SignInStore>,
    pub(crate) links: Arc<dyn AccountLinkStore>,
    pub(crate) notices: Arc<dyn NoticeStore>,
    pub(crate) invitations: Arc<dyn InvitationStore>,
    pub(crate) audit: Arc<dyn AuditLog>,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) catalogue: Arc<dyn Catalogue>,
    pub(crate) partners: Arc<dyn SessionService>,
    pub(crate) webhooks: Webhooks,
    pub(crate) receivers: Arc<dyn ReceiverStore>,
    pub(crate) templates: Arc<dyn TemplateStore>,
    pub(crate) brands: Arc<dyn BrandStore>,
    pub(crate) stationery: Arc<dyn Stationery>,
    pub(crate) passwords: Arc<dyn Passwords>,
    pub(crate) codes: Arc<dyn OneTimeCodes>,
    pub(crate) passkeys: Arc<dyn PasskeyStore>,
    pub(crate) identities: Option<Arc<dyn IdentityProvider>>,
    /// None where the deployment has no host name.
    pub(crate) party: Option<Arc<dyn Passkeys>>,
    pub(crate) browsers: Arc<dyn KnownBrowserStore>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) attempts: Arc<dyn AttemptLimiter>,
    pub(crate) rules: SignIns,
    pub(crate) limits: Limits,
    pub(crate) quotas: Quotas,
    /// Closes what a form carries to the next one.
    pub(crate) seal: Seal,
}

/// The party that passkeys are made for, where they can be.
fn party(origin: &str) -> Option<Arc<dyn Passkeys>> {
    let host = Url::parse(origin).ok()?.host_str()?.to_owned();
    let party = RelyingParty::new(&host, origin.to_owned()).ok()?;
    Some(Arc::new(party))
}

/// The provider of identities, if there is one.
fn identities(config: &Config) -> Result<Option<Arc<dyn IdentityProvider>>, Failure> {
    let Some(account) = config.identity.clone() else { return Ok(None) };
    let back = format!("{}/portal/sign-in/back", config.addresses.public);
    Ok(Some(Arc::new(OidcProvider::new(account, &back, HttpClient::new()?)?)))
}

impl People {
    pub(crate) fn open(
        keys: &Keys,
        core: &Arc<Core>,
        config: &Config,
        store: &Arc<Store>,
        (limiter, attempts): &Limiters,
        partners: Arc<dyn SessionService>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            core: core.clone(),
            users: store.clone(),
            sign_ins: store.clone(),
            links: store.clone(),
            notices: store.clone(),
            invitations: store.clone(),
            audit: store.clone(),
            keys: store.clone(),
            sessions: store.clone(),
            catalogue: store.clone(),
            partners,
            webhooks: Webhooks {
                store: store.clone(),
                log: store.clone(),
                keys: store.clone(),
                clock: core.clock.clone(),
                chance: core.chance.clone(),
                egress: config.egress.clone(),
            },
            receivers: store.clone(),
            templates: store.clone(),
            brands: store.clone(),
            stationery: Arc::new(MailTemplates),
            passwords: Arc::new(Argon2Passwords::new().map_err(explain)?),
            codes: Arc::new(TotpCodes),
            passkeys: store.clone(),
            party: party(&config.addresses.public),
            identities: identities(config)?,
            browsers: store.clone(),
            limiter: limiter.clone(),
            attempts: attempts.clone(),
            rules: config.sign_ins,
            limits: config.limits,
            quotas: config.quotas,
            seal: keys.seal("portal", &SealKeys::default()),
        })
    }

    /// What the portal's pages call: use cases that are carried out whole.
    pub(crate) fn pages(runtime: &Handle, people: &Arc<Self>, config: &Config) -> portal::Portal {
        let whole = Whole::new(runtime, people.clone());
        portal::Portal {
            accounts: whole.clone(),
            keys: whole.clone(),
            sessions: whole.clone(),
            webhooks: whole.clone(),
            team: whole.clone(),
            links: whole.clone(),
            embedding: whole.clone(),
            receivers: whole.clone(),
            templates: whole.clone(),
            branding: whole.clone(),
            passkeys: whole.clone(),
            identities: whole.clone(),
            confirmations: whole.clone(),
            audit: whole,
            clock: people.core.clock.clone(),
            origin: config.addresses.public.clone(),
        }
    }

    async fn note(&self, who: &Visitor, action: &str, subject: &str) -> Result<(), StoreError> {
        let deed = Deed::new(self.core.clock.now(), &who.email, action, subject);
        self.audit.note(who.team, &deed.from(who.from.address)).await
    }
}
