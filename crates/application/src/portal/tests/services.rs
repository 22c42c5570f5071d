//! The services of the portal, wired to the in-memory store and the fakes.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{egress::Egress, fairness::Quotas};
use ports::{driving::MockSessionService, encryption::Cipher, identity::IdentityProvider};
use tokio::runtime::Handle;

use super::{
    fakes::{EveryLine, PlainRenderer, PlainTotp},
    fixture::Fixture,
};
use crate::{
    portal::{
        AccountLinkIssuer, AccountNotices, Accounts, ApiKeys, AttemptGuard, AuditLogs, AuditTrail,
        Branding, Contacts, Embedding, Identities, KnownBrowsers, Links, Members,
        PasskeyChallenges, Passkeys, PasswordResets, PasswordRules, ProviderProofs,
        Reauthentication, RefusedSignIns, RequestLimits, SecondFactorCodes, SignInIssuer,
        TeamSessionLookup, TeamSessions, TeamWebhooks, Templates,
    },
    settings::{Limits, SignInPolicy},
    testing::PlainTokens,
    webhooks::WebhookUseCases,
};

pub(super) const POLICY: SignInPolicy = SignInPolicy {
    idle: TimeDelta::minutes(30),
    absolute: TimeDelta::hours(12),
    operators_need_second_factor: false,
};
pub(super) const QUOTAS: Quotas =
    Quotas { total: 8, per_team: 4, development: 2, waiting_per_team: 100 };

impl Fixture {
    fn cipher(&self) -> Arc<dyn Cipher> {
        self.cipher.clone()
    }

    pub(super) fn audit_trail(&self) -> AuditTrail {
        AuditTrail { log: self.audit.clone(), clock: self.clock.clone() }
    }

    fn notices(&self) -> AccountNotices {
        AccountNotices {
            notices: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn link_issuer(&self) -> AccountLinkIssuer {
        AccountLinkIssuer {
            links: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn limits(&self) -> RequestLimits {
        RequestLimits { limiter: self.limiter.clone(), clock: self.clock.clone() }
    }

    fn passwords(&self) -> PasswordRules {
        PasswordRules { hasher: self.hasher.clone() }
    }

    fn codes(&self) -> SecondFactorCodes {
        SecondFactorCodes {
            second_factors: self.store.clone(),
            totp: Arc::new(PlainTotp),
            cipher: self.cipher(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn challenges(&self) -> PasskeyChallenges {
        PasskeyChallenges {
            passkeys: self.store.clone(),
            verifier: self.verifier.clone(),
            cipher: self.cipher(),
            clock: self.clock.clone(),
        }
    }

    fn proofs(&self) -> ProviderProofs {
        ProviderProofs { cipher: self.cipher(), clock: self.clock.clone() }
    }

    fn browsers(&self) -> KnownBrowsers {
        KnownBrowsers {
            browsers: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn guard(&self) -> AttemptGuard {
        AttemptGuard { attempts: self.attempts.clone(), clock: self.clock.clone() }
    }

    fn refusals(&self) -> RefusedSignIns {
        RefusedSignIns {
            audit: self.audit_trail(),
            refusals: Arc::new(EveryLine),
            runtime: Handle::current(),
        }
    }

    fn issuer(&self) -> SignInIssuer {
        SignInIssuer {
            sign_ins: self.store.clone(),
            policy: self.policy,
            browsers: self.browsers(),
            guard: self.guard(),
            audit: self.audit_trail(),
            notices: self.notices(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn accounts(&self) -> Accounts {
        Accounts {
            users: self.store.clone(),
            second_factors: self.store.clone(),
            sign_ins: self.store.clone(),
            policy: self.policy,
            passwords: self.passwords(),
            codes: self.codes(),
            browsers: self.browsers(),
            guard: self.guard(),
            issuer: self.issuer(),
            refusals: self.refusals(),
            audit: self.audit_trail(),
            notices: self.notices(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn passkeys(&self) -> Passkeys {
        Passkeys {
            passkeys: self.store.clone(),
            sign_ins: self.store.clone(),
            challenges: self.challenges(),
            codes: self.codes(),
            issuer: self.issuer(),
            refusals: self.refusals(),
            audit: self.audit_trail(),
            notices: self.notices(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn reauthentication(&self) -> Reauthentication {
        Reauthentication {
            users: self.store.clone(),
            sign_ins: self.store.clone(),
            forms: self.store.clone(),
            passwords: self.passwords(),
            proofs: self.proofs(),
            codes: self.codes(),
            challenges: self.challenges(),
            guard: self.guard(),
            refusals: self.refusals(),
            audit: self.audit_trail(),
            cipher: self.cipher(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn links(&self) -> Links {
        let (users, issuer) = (self.store.clone(), self.link_issuer());
        Links {
            links: self.store.clone(),
            resets: PasswordResets { users, issuer, audit: self.audit_trail() },
            tokens: Arc::new(PlainTokens),
            passwords: self.passwords(),
            limits: self.limits(),
            audit: self.audit_trail(),
            notices: self.notices(),
            clock: self.clock.clone(),
            runtime: Handle::current(),
        }
    }

    pub(super) fn identities(&self, provider: Option<Arc<dyn IdentityProvider>>) -> Identities {
        Identities {
            provider,
            users: self.store.clone(),
            subjects: self.store.clone(),
            issuer: self.issuer(),
            browsers: self.browsers(),
            proofs: self.proofs(),
            refusals: self.refusals(),
            limits: self.limits(),
            audit: self.audit_trail(),
            cipher: self.cipher(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn api_keys(&self) -> ApiKeys {
        ApiKeys {
            keys: self.store.clone(),
            audit: self.audit_trail(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn lookup(&self) -> TeamSessionLookup {
        TeamSessionLookup { sessions: self.store.clone(), keys: self.store.clone() }
    }

    pub(super) fn sessions(&self, partner: MockSessionService) -> TeamSessions {
        TeamSessions {
            sessions: self.store.clone(),
            keys: self.store.clone(),
            catalogue: self.store.clone(),
            lookup: self.lookup(),
            partner: Arc::new(partner),
            turns: self.turns.clone(),
            limits: Limits::default(),
            quotas: QUOTAS,
            audit: self.audit_trail(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn webhooks(&self) -> TeamWebhooks {
        TeamWebhooks {
            webhooks: Arc::new(WebhookUseCases {
                store: self.store.clone(),
                log: self.store.clone(),
                keys: self.store.clone(),
                teams: self.store.clone(),
                clock: self.clock.clone(),
                random: self.random.clone(),
                egress: Egress::default(),
            }),
            store: self.store.clone(),
            lookup: self.lookup(),
            audit: self.audit_trail(),
            clock: self.clock.clone(),
            deliveries: self.deliveries.clone(),
        }
    }

    pub(super) fn members(&self) -> Members {
        Members {
            users: self.store.clone(),
            members: self.store.clone(),
            teams: self.store.clone(),
            has_regions: true,
            sign_ins: self.store.clone(),
            invitations: self.store.clone(),
            links: self.store.clone(),
            issuer: self.link_issuer(),
            limits: self.limits(),
            audit: self.audit_trail(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn contacts(&self) -> Contacts {
        Contacts {
            contacts: self.store.clone(),
            audit: self.audit_trail(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn templates(&self) -> Templates {
        Templates {
            templates: self.store.clone(),
            brands: self.store.clone(),
            renderer: Arc::new(PlainRenderer),
            audit: self.audit_trail(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn branding(&self) -> Branding {
        Branding { brands: self.store.clone(), audit: self.audit_trail() }
    }

    pub(super) fn embedding(&self) -> Embedding {
        Embedding { teams: self.store.clone(), audit: self.audit_trail() }
    }

    pub(super) fn audit_logs(&self) -> AuditLogs {
        AuditLogs { log: self.audit.clone() }
    }
}
