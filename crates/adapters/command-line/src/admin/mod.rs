//! `avouch admin …`: one JSON object on standard output for each command.

mod attestations;
mod header;
mod platforms;
mod receivers;
mod templates;
mod webhooks;

use std::{path::PathBuf, sync::Arc};

use chrono::TimeDelta;
use clap::Subcommand;
use domain::{
    account::{Email, Role},
    api_key::Environment,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, SessionId, TeamId},
};
use ports::{
    clock::Clock,
    driving::{
        ApiKeyAdminService, AttestationExportService, ContactAdminService, DataKeys,
        DefinitionService, EncryptionAdminService, IssuedApiKey, NewApiKey, PlatformAdminService,
        TeamAdminService, TemplateAdminService, UserAdminService, WebhookService,
    },
};
use serde_json::{Value, json};

use self::{
    attestations::export, platforms::PlatformCommand, receivers::ReceiverCommand,
    templates::TemplateCommand, webhooks::WebhookCommand,
};
use crate::CommandError;

/// The services that the commands call.
pub struct AdminServices {
    pub teams: Arc<dyn TeamAdminService>,
    pub api_keys: Arc<dyn ApiKeyAdminService>,
    pub users: Arc<dyn UserAdminService>,
    pub contacts: Arc<dyn ContactAdminService>,
    pub templates: Arc<dyn TemplateAdminService>,
    pub webhooks: Arc<dyn WebhookService>,
    pub attestations: Arc<dyn AttestationExportService>,
    pub encryption: Arc<dyn EncryptionAdminService>,
    pub definitions: Arc<dyn DefinitionService>,
    pub platforms: Arc<dyn PlatformAdminService>,
    pub clock: Arc<dyn Clock>,
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Creates a team; prints {"teamId"}
    CreateTeam { name: String },
    /// Sets the origins whose pages may embed the team's sessions; without origins, any page may
    SetFrameAncestors {
        #[arg(long)]
        team: TeamId,
        origins: Vec<FrameAncestor>,
    },
    /// Creates an API key; prints {"keyId","apiKey"}, the only time that the key is shown
    CreateKey {
        #[arg(long)]
        team: TeamId,
        #[arg(long)]
        environment: Environment,
        #[arg(long, value_parser = ["30", "90", "180"])]
        expires_in_days: Option<String>,
        /// The name of the key in the portal
        #[arg(long, default_value = "")]
        label: String,
    },
    /// Creates a user of the portal; prints {"userId","password"}, the only time that the password
    /// is shown. It is valid for 72 hours, in which the user chooses another one
    CreateUser {
        #[arg(long)]
        team: TeamId,
        #[arg(long)]
        email: Email,
        /// viewer, member, owner or operator
        #[arg(long)]
        role: Role,
    },
    /// Gives a user a new password for 72 hours, and ends their sign-ins; prints
    /// {"userId","password","signInsEnded"}
    ResetPassword {
        #[arg(long)]
        email: Email,
    },
    /// Removes the second factors of a user who has lost them, so that the password is enough; prints
    /// {"userId","signInsEnded"}
    DropSecondFactor {
        #[arg(long)]
        email: Email,
    },
    /// Replaces the key of a key record; the old key is invalid from now on
    RotateKey { key_id: ApiKeyId },
    /// Revokes a key record
    RevokeKey { key_id: ApiKeyId },
    #[command(flatten)]
    Webhooks(WebhookCommand),
    #[command(flatten)]
    Receivers(ReceiverCommand),
    #[command(flatten)]
    Templates(TemplateCommand),
    /// Writes a session's attestation, and what its verification needs, to a folder for
    /// `avouch-verify`; prints {"proofHash","mode"}
    ExportAttestation {
        session_id: SessionId,
        #[arg(long)]
        out: PathBuf,
    },
    /// Encrypts what earlier keys encrypted, and rows that are not encrypted yet, with the first of
    /// the configured keys; prints {"resealed","rewrapped","encrypted","destroyed"}
    Reseal {
        /// Gives each team a new data key first, and encrypts every row with it
        #[arg(long)]
        new_data_keys: bool,
    },
    /// Generates a new secret.key, and keeps the previous one as secret.key.old; prints
    /// {"fingerprint","earlier"}
    RotateSecretKey,
    #[command(flatten)]
    Platforms(PlatformCommand),
}

impl AdminCommand {
    /// Carries the command out, and returns what it prints.
    ///
    /// # Errors
    /// An argument is invalid, or a service refused or failed.
    pub async fn run(self, services: &AdminServices) -> Result<Value, CommandError> {
        match self {
            Self::CreateTeam { name } => {
                Ok(json!({ "teamId": services.teams.create(&name).await? }))
            }
            Self::SetFrameAncestors { team, origins } => {
                services.teams.set_frame_ancestors(team, &origins).await?;
                let origins: Vec<_> = origins.iter().map(ToString::to_string).collect();
                Ok(json!({ "teamId": team, "origins": origins }))
            }
            Self::CreateKey { team, environment, expires_in_days, label } => {
                let days = expires_in_days.map(|days| days.parse::<i64>()).transpose()?;
                let expires_in = days.map(TimeDelta::days);
                let key = NewApiKey { team, environment, expires_in, label };
                Ok(issued_key(&services.api_keys.create(key).await?))
            }
            Self::RotateKey { key_id } => Ok(issued_key(&services.api_keys.rotate(key_id).await?)),
            Self::RevokeKey { key_id } => {
                services.api_keys.revoke(key_id).await?;
                Ok(json!({ "keyId": key_id }))
            }
            Self::CreateUser { team, email, role } => {
                let created = services.users.create(team, email, role).await?;
                Ok(json!({ "userId": created.user, "password": created.password.expose() }))
            }
            Self::ResetPassword { email } => {
                let (reset, ended) = services.users.reset_password(&email).await?;
                let (user, password) = (reset.user, reset.password.expose());
                Ok(json!({ "userId": user, "password": password, "signInsEnded": ended }))
            }
            Self::DropSecondFactor { email } => {
                let (user, ended) = services.users.drop_second_factor(&email).await?;
                Ok(json!({ "userId": user, "signInsEnded": ended }))
            }
            Self::Webhooks(command) => command.run(&*services.webhooks, &*services.clock).await,
            Self::Receivers(command) => command.run(&*services.contacts).await,
            Self::Templates(command) => command.run(&*services.templates).await,
            Self::ExportAttestation { session_id, out } => {
                export(&*services.attestations, session_id, &out).await
            }
            Self::Reseal { new_data_keys } => reseal(&*services.encryption, new_data_keys).await,
            Self::RotateSecretKey => {
                let rotated = services.encryption.rotate_secret_key()?;
                Ok(json!({ "fingerprint": rotated.current, "earlier": rotated.earlier }))
            }
            Self::Platforms(command) => {
                command.run(&*services.platforms, &*services.definitions).await
            }
        }
    }
}

fn issued_key(key: &IssuedApiKey) -> Value {
    json!({ "keyId": key.id, "apiKey": key.text.expose() })
}

async fn reseal(
    encryption: &dyn EncryptionAdminService,
    new_data_keys: bool,
) -> Result<Value, CommandError> {
    let data_keys = if new_data_keys { DataKeys::Replace } else { DataKeys::Keep };
    let (done, destroyed) = encryption.reencrypt(data_keys).await?;
    Ok(json!({
        "resealed": done.reencrypted,
        "rewrapped": done.rewrapped,
        "encrypted": done.encrypted,
        "destroyed": destroyed,
    }))
}

#[cfg(test)]
mod tests;
