//! The services of a member's own account and of signing in.

use std::sync::Arc;

use ::identity::OidcProvider;
use application::portal::{
    Accounts, Identities, Links, Passkeys, PasswordResets, Reauthentication, SignInIssuer,
};
use http_client::HttpClient;
use ports::identity::IdentityProvider;

use super::Shared;
use crate::{config::Config, storage::StartupError};

/// Returns the configured identity provider.
fn identity_provider(config: &Config) -> Result<Option<Arc<dyn IdentityProvider>>, StartupError> {
    let Some(account) = config.identity.clone() else { return Ok(None) };
    let back = format!("{}/portal/sign-in/back", config.addresses.public);
    Ok(Some(Arc::new(OidcProvider::new(account, &back, HttpClient::new()?)?)))
}

impl Shared<'_> {
    pub(super) fn accounts(&self, issuer: SignInIssuer) -> Accounts {
        Accounts {
            users: self.store.clone(),
            second_factors: self.store.clone(),
            sign_ins: self.store.clone(),
            policy: self.config.sign_ins,
            passwords: self.passwords.clone(),
            codes: self.codes.clone(),
            browsers: self.browsers.clone(),
            guard: self.guard.clone(),
            issuer,
            refusals: self.refusals.clone(),
            audit: self.audit.clone(),
            notices: self.notices.clone(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn passkeys(&self, issuer: SignInIssuer) -> Passkeys {
        Passkeys {
            passkeys: self.store.clone(),
            sign_ins: self.store.clone(),
            challenges: self.challenges.clone(),
            codes: self.codes.clone(),
            issuer,
            refusals: self.refusals.clone(),
            audit: self.audit.clone(),
            notices: self.notices.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn identities(&self, issuer: SignInIssuer) -> Result<Identities, StartupError> {
        Ok(Identities {
            provider: identity_provider(self.config)?,
            users: self.store.clone(),
            subjects: self.store.clone(),
            issuer,
            browsers: self.browsers.clone(),
            proofs: self.proofs.clone(),
            refusals: self.refusals.clone(),
            limits: self.limits.clone(),
            audit: self.audit.clone(),
            cipher: self.cipher.clone(),
            clock: self.clock.clone(),
        })
    }

    pub(super) fn links(&self) -> Links {
        Links {
            links: self.store.clone(),
            resets: PasswordResets {
                users: self.store.clone(),
                issuer: self.links.clone(),
                audit: self.audit.clone(),
            },
            tokens: self.parts.tokens.clone(),
            passwords: self.passwords.clone(),
            limits: self.limits.clone(),
            audit: self.audit.clone(),
            notices: self.notices.clone(),
            clock: self.clock.clone(),
            runtime: self.parts.runtime.clone(),
        }
    }

    pub(super) fn reauthentication(&self) -> Reauthentication {
        Reauthentication {
            users: self.store.clone(),
            sign_ins: self.store.clone(),
            forms: self.store.clone(),
            passwords: self.passwords.clone(),
            proofs: self.proofs.clone(),
            codes: self.codes.clone(),
            challenges: self.challenges.clone(),
            guard: self.guard.clone(),
            refusals: self.refusals.clone(),
            audit: self.audit.clone(),
            cipher: self.cipher.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }
}
