//! The use cases of operators, who use the command line: teams, keys, members, contacts, templates,
//! attestations, encryption and platforms.
//!
//! Webhooks are managed by [`WebhookUseCases`](crate::webhooks::WebhookUseCases), as in the portal.

mod api_keys;
mod attestations;
mod audit;
mod contacts;
mod definitions;
mod encryption;
mod platforms;
mod teams;
mod templates;
mod trial;
mod users;

pub use self::{
    api_keys::ApiKeyAdministration,
    attestations::AttestationExport,
    audit::OperatorAudit,
    contacts::ContactAdministration,
    definitions::DefinitionValidation,
    encryption::EncryptionAdministration,
    platforms::PlatformAdministration,
    teams::TeamAdministration,
    templates::TemplateAdministration,
    trial::{TrialEnd, TrialError, TrialProgress, TrialSession},
    users::UserAdministration,
};

use std::fmt::Display;

use domain::id::TeamId;
use ports::{driving::AdministrationError, key_store::TeamStore};

/// Refuses a team that does not exist.
async fn require_team(teams: &dyn TeamStore, team: TeamId) -> Result<(), AdministrationError> {
    require(teams.has_team(team).await?, "team", &team)
}

/// Refuses a record that was not found.
fn require(
    is_found: bool,
    kind: &'static str,
    id: &impl Display,
) -> Result<(), AdministrationError> {
    if is_found { Ok(()) } else { Err(AdministrationError::NotFound { kind, id: id.to_string() }) }
}

#[cfg(test)]
mod tests;
