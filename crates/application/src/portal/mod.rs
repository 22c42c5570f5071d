//! The use cases of the portal, one service for each of its driving ports.
//!
//! **Invariant:** a service checks the permission of the signed-in user first, and records an audit
//! event before it changes anything, so that the log of a team has no gaps.

mod account_link_issuer;
mod account_notices;
mod accounts;
mod api_keys;
mod audit_logs;
mod audit_trail;
mod branding;
mod contacts;
mod embedding;
mod identities;
mod links;
mod members;
mod overview;
mod passkeys;
mod reauthentication;
mod request_limits;
mod sign_in;
mod team_session_lookup;
mod team_sessions;
mod team_webhooks;
mod templates;
#[cfg(test)]
mod tests;

use ports::driving::{PortalError, SignedInUser};

pub(crate) use self::sign_in::account_key;
pub use self::{
    account_link_issuer::AccountLinkIssuer,
    account_notices::AccountNotices,
    accounts::Accounts,
    api_keys::ApiKeys,
    audit_logs::AuditLogs,
    audit_trail::AuditTrail,
    branding::Branding,
    contacts::Contacts,
    embedding::Embedding,
    identities::Identities,
    links::{Links, PasswordResets},
    members::Members,
    passkeys::Passkeys,
    reauthentication::Reauthentication,
    request_limits::RequestLimits,
    sign_in::{
        AttemptGuard, KnownBrowsers, PasskeyChallenges, PasswordRules, ProviderProofs,
        RefusedSignIns, SecondFactorCodes, SignInIssuer,
    },
    team_session_lookup::TeamSessionLookup,
    team_sessions::TeamSessions,
    team_webhooks::TeamWebhooks,
    templates::Templates,
};

/// Refuses users who have not shown all factors. It is all that a change of one's own account
/// requires, whatever the role.
fn require_complete_sign_in(user: &SignedInUser) -> Result<(), PortalError> {
    if user.passed { Ok(()) } else { Err(PortalError::Forbidden) }
}
