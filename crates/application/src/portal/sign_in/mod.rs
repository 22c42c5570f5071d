//! Checking credentials and beginning sign-ins: the collaborators of the services that do so.

mod attempt_guard;
mod issuer;
mod known_browsers;
mod passkey_challenges;
mod password_rules;
mod provider_proofs;
mod refused;
mod second_factor_codes;
mod tokens;

pub use self::{
    attempt_guard::AttemptGuard, issuer::SignInIssuer, known_browsers::KnownBrowsers,
    passkey_challenges::PasskeyChallenges, password_rules::PasswordRules,
    provider_proofs::ProviderProofs, refused::RefusedSignIns,
    second_factor_codes::SecondFactorCodes,
};
pub(crate) use self::{
    issuer::FirstFactorKind,
    passkey_challenges::{reauthentication_context, registration_context, sign_in_context},
    tokens::{account_key, hash_of, random_token},
};
