//! The services of the portal, wired to their adapters.

mod accounts;
mod team;

use std::sync::Arc;

use ::passkeys::RelyingParty;
use ::portal::Portal;
use application::{
    definition_statistics::PlatformHealthReader,
    portal::{
        AccountLinkIssuer, AccountNotices, AttemptGuard, AuditLogs, AuditTrail, Branding,
        Embedding, KnownBrowsers, PasskeyChallenges, PasswordRules, ProviderProofs, RefusedSignIns,
        RequestLimits, SecondFactorCodes, SignInIssuer,
    },
    sessions::{LookupUseCases, SessionUseCases},
};
use authoring::Studios;
use credentials::{Argon2Passwords, TotpCodes};
use ports::{clock::Clock, encryption::Cipher, passkeys::PasskeyVerifier, random::RandomSource};
use store::Store;
use system::{encryption::EncryptionKeys, secret_key::SecretKeys};

use crate::{
    config::Config,
    engine::SharedParts,
    limiters::Limiters,
    storage::{StartupError, error_chain},
};

/// The parts that several services share.
struct Shared<'a> {
    parts: &'a SharedParts,
    config: &'a Config,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
    cipher: Arc<dyn Cipher>,
    audit: AuditTrail,
    notices: AccountNotices,
    links: AccountLinkIssuer,
    limits: RequestLimits,
    passwords: PasswordRules,
    codes: SecondFactorCodes,
    challenges: PasskeyChallenges,
    proofs: ProviderProofs,
    browsers: KnownBrowsers,
    guard: AttemptGuard,
    refusals: RefusedSignIns,
}

/// Wires what the portal's pages call.
pub(crate) fn portal(
    keys: &SecretKeys,
    parts: &SharedParts,
    config: &Config,
    store: &Arc<Store>,
    limiters: &Limiters,
    (partner, studios): (&Arc<SessionUseCases>, &Studios),
) -> Result<Portal, StartupError> {
    let lookups = LookupUseCases {
        catalogue: store.clone(),
        templates: store.clone(),
        places: partner.places.clone(),
        channels: partner.channels.clone(),
        health: PlatformHealthReader { statistics: store.clone(), clock: parts.clock.clone() },
    };
    let shared = Shared::new(keys, parts, config, store.clone(), limiters)?;
    let issuer = shared.issuer();
    Ok(Portal {
        accounts: Arc::new(shared.accounts(issuer.clone())),
        passkeys: Arc::new(shared.passkeys(issuer.clone())),
        identities: Arc::new(shared.identities(issuer)?),
        links: Arc::new(shared.links()),
        confirmations: Arc::new(shared.reauthentication()),
        keys: Arc::new(shared.api_keys()),
        sessions: Arc::new(shared.sessions(partner.clone())),
        authoring: Arc::new(studios.clone()),
        places: partner.places.clone(),
        lookups: Arc::new(lookups),
        webhooks: Arc::new(shared.webhooks()),
        team: Arc::new(shared.members()),
        embedding: Arc::new(Embedding { teams: store.clone(), audit: shared.audit.clone() }),
        receivers: Arc::new(shared.contacts()),
        templates: Arc::new(shared.templates()),
        branding: Arc::new(Branding { brands: store.clone(), audit: shared.audit.clone() }),
        audit: Arc::new(AuditLogs { log: store.clone() }),
        clock: shared.clock,
        origin: config.addresses.public.clone(),
    })
}

impl<'a> Shared<'a> {
    fn new(
        keys: &SecretKeys,
        parts: &'a SharedParts,
        config: &'a Config,
        store: Arc<Store>,
        (limiter, attempts): &Limiters,
    ) -> Result<Self, StartupError> {
        let (clock, random) = (parts.clock.clone(), parts.random.clone());
        let cipher: Arc<dyn Cipher> = Arc::new(keys.cipher("portal", &EncryptionKeys::default()));
        let audit = AuditTrail { log: store.clone(), clock: clock.clone() };
        Ok(Self {
            notices: AccountNotices {
                notices: store.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            links: AccountLinkIssuer {
                links: store.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            limits: RequestLimits { limiter: limiter.clone(), clock: clock.clone() },
            passwords: PasswordRules {
                hasher: Arc::new(Argon2Passwords::new().map_err(error_chain)?),
            },
            codes: SecondFactorCodes {
                second_factors: store.clone(),
                totp: Arc::new(TotpCodes),
                cipher: cipher.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            challenges: PasskeyChallenges {
                passkeys: store.clone(),
                verifier: RelyingParty::for_origin(&config.addresses.public)
                    .map(|party| -> Arc<dyn PasskeyVerifier> { Arc::new(party) }),
                cipher: cipher.clone(),
                clock: clock.clone(),
            },
            proofs: ProviderProofs { cipher: cipher.clone(), clock: clock.clone() },
            browsers: KnownBrowsers {
                browsers: store.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            guard: AttemptGuard { attempts: attempts.clone(), clock: clock.clone() },
            refusals: RefusedSignIns {
                audit: audit.clone(),
                refusals: parts.refusals.clone(),
                runtime: parts.runtime.clone(),
            },
            audit,
            parts,
            config,
            store,
            clock,
            random,
            cipher,
        })
    }

    fn issuer(&self) -> SignInIssuer {
        SignInIssuer {
            sign_ins: self.store.clone(),
            policy: self.config.sign_ins,
            browsers: self.browsers.clone(),
            guard: self.guard.clone(),
            audit: self.audit.clone(),
            notices: self.notices.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }
}
