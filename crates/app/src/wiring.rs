//! The partner's use cases and the portal's, wired to their adapters.

use std::sync::Arc;

use ::identity::OidcProvider;
use ::passkeys::RelyingParty;
use application::{
    advance::Core, portal::People, sessions::SessionUseCases, webhooks::WebhookUseCases,
};
use calls::HttpClient;
use credentials::{Argon2Passwords, TotpCodes};
use notify::MailTemplates;
use ports::{
    driving::SessionService, identity::IdentityProvider, passkeys::PasskeyVerifier,
    recording::RecordingVault,
};
use store::Store;
use system::encryption::EncryptionKeys;
use system::places::IsoPlaces;
use url::Url;

use crate::{
    channels,
    config::Config,
    limiters::Limiters,
    secret_key::Keys,
    storage::{StartupError, error_chain},
};

pub(crate) fn partners(
    config: &Config,
    core: &Arc<Core>,
    store: &Arc<Store>,
    vault: Arc<dyn RecordingVault>,
    (limiter, _): &Limiters,
) -> SessionUseCases {
    SessionUseCases {
        core: core.clone(),
        recordings: store.clone(),
        notifications: store.clone(),
        receivers: store.clone(),
        templates: store.clone(),
        vault,
        places: Arc::new(IsoPlaces::new(config.countries.as_deref())),
        channels: channels::active(&config.mailing.messages).into(),
        limiter: limiter.clone(),
        recipient_limit: config.limits.recipient,
    }
}

/// The party that passkeys are made for, where they can be.
fn party(origin: &str) -> Option<Arc<dyn PasskeyVerifier>> {
    let host = Url::parse(origin).ok()?.host_str()?.to_owned();
    let party = RelyingParty::new(&host, origin.to_owned()).ok()?;
    Some(Arc::new(party))
}

/// The provider of identities, if there is one.
fn identities(config: &Config) -> Result<Option<Arc<dyn IdentityProvider>>, StartupError> {
    let Some(account) = config.identity.clone() else { return Ok(None) };
    let back = format!("{}/portal/sign-in/back", config.addresses.public);
    Ok(Some(Arc::new(OidcProvider::new(account, &back, HttpClient::new()?)?)))
}

pub(crate) fn people(
    keys: &Keys,
    core: &Arc<Core>,
    config: &Config,
    store: &Arc<Store>,
    (limiter, attempts): &Limiters,
    partners: Arc<dyn SessionService>,
) -> Result<People, StartupError> {
    Ok(People {
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
        webhooks: WebhookUseCases {
            store: store.clone(),
            log: store.clone(),
            keys: store.clone(),
            clock: core.clock.clone(),
            chance: core.random.clone(),
            egress: config.egress.clone(),
        },
        receivers: store.clone(),
        templates: store.clone(),
        brands: store.clone(),
        stationery: Arc::new(MailTemplates),
        passwords: Arc::new(Argon2Passwords::new().map_err(error_chain)?),
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
        cipher: Arc::new(keys.seal("portal", &EncryptionKeys::default())),
    })
}

/// What the portal's pages call.
pub(crate) fn pages(people: &Arc<People>, config: &Config) -> http_api::Pages {
    let portal = portal::Portal {
        accounts: people.clone(),
        keys: people.clone(),
        sessions: people.clone(),
        webhooks: people.clone(),
        team: people.clone(),
        links: people.clone(),
        embedding: people.clone(),
        receivers: people.clone(),
        templates: people.clone(),
        branding: people.clone(),
        passkeys: people.clone(),
        identities: people.clone(),
        confirmations: people.clone(),
        audit: people.clone(),
        clock: people.core.clock.clone(),
        origin: config.addresses.public.clone(),
    };
    Arc::new(move |config| {
        config.configure(portal::routes(portal.clone(), http_api::address));
    })
}
