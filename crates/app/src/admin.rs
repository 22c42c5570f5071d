//! `avouch admin …`: one JSON object on stdout for each command.

use std::{fs, path::PathBuf};

use chrono::TimeDelta;
use clap::Subcommand;
use domain::{
    account::{Email, Role},
    api_key::{ApiKey, Environment},
    frame_ancestors::{self, FrameAncestor},
    id::{ApiKeyId, SessionId, TeamId},
    workflow::{Definition, check},
};
use ports::{
    catalogue::Catalogue as _,
    clock::Clock as _,
    key_store::{KeyStore as _, TeamStore as _},
    random::RandomSource as _,
};
use serde_json::{Value, json};
use store::Store;
use system::{
    clock::{SystemClock, SystemRandom},
    secret_key::SecretKeys,
};
use uuid::Uuid;

mod attestations;
mod header;
mod people;
mod receivers;
mod reseal;
mod templates;
mod webhooks;

use self::{
    attestations::export, receivers::ReceiverCommand, reseal::reseal, templates::TemplateCommand,
    webhooks::WebhookCommand,
};
use crate::{
    config::Config,
    storage::{OpenedStorage, error_chain, open_store},
};
use application::api_keys::ApiKeyText;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Who the log says that it was.
const ADMIN: &str = "avouch admin";

#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Makes a team; prints {"teamId"}
    CreateTeam { name: String },
    /// Says whose pages may show the team's sessions, by their origins; none: anybody's
    SetFrameAncestors {
        #[arg(long)]
        team: TeamId,
        origins: Vec<FrameAncestor>,
    },
    /// Makes an API key; prints {"keyId","apiKey"}, the only time the key is shown
    CreateKey {
        #[arg(long)]
        team: TeamId,
        #[arg(long)]
        environment: Environment,
        #[arg(long, value_parser = ["30", "90", "180"])]
        expires_in_days: Option<String>,
        /// What the portal calls it
        #[arg(long, default_value = "")]
        label: String,
    },
    /// Makes a person for the portal; prints {"userId","password"}, the only time it is shown. It
    /// opens the portal for 72 hours, in which they choose their own
    CreateUser {
        #[arg(long)]
        team: TeamId,
        #[arg(long)]
        email: Email,
        /// viewer, member, owner or operator
        #[arg(long)]
        role: Role,
    },
    /// Gives somebody a new password for 72 hours, and ends their sign-ins; prints
    /// {"userId","password","signInsEnded"}
    ResetPassword {
        #[arg(long)]
        email: Email,
    },
    /// Lets somebody in with their password alone, who has lost all that they have beside it
    DropSecondFactor {
        #[arg(long)]
        email: Email,
    },
    /// Gives a key record a new key; the old one opens nothing from now on
    RotateKey { key_id: ApiKeyId },
    /// Revokes a key record
    RevokeKey { key_id: ApiKeyId },
    #[command(flatten)]
    Webhooks(WebhookCommand),
    #[command(flatten)]
    Receivers(ReceiverCommand),
    #[command(flatten)]
    Templates(TemplateCommand),
    /// Writes what belongs to a session's attestation to a folder, for `avouch-verify`; prints
    /// {"proofHash","mode"}
    ExportAttestation {
        session_id: SessionId,
        #[arg(long)]
        out: PathBuf,
    },
    /// Encrypts anew, with the first of the configured keys, what other keys closed, and rows that
    /// are not encrypted yet; prints {"resealed","rewrapped","encrypted","destroyed"}
    Reseal {
        /// Gives each team a new data key first, and encrypts every row with it
        #[arg(long)]
        new_data_keys: bool,
    },
    /// Makes a new secret.key and keeps the one before as secret.key.old; prints
    /// {"fingerprint","earlier"}
    RotateSecretKey,
    /// Publishes a platform definition; prints {"platformId","version"}
    PublishPlatform { file: PathBuf },
}

impl Admin {
    pub(crate) async fn run(self, config: &Config) -> Result<Value, Failure> {
        let OpenedStorage { store, keys, stable_key } = open_store(config).await?;
        let now = SystemClock.now();
        let id = || Uuid::from_u128(SystemRandom.new_id());
        match self {
            Self::CreateTeam { name } => {
                let team = TeamId::from_uuid(id());
                store.add_team(team, team_name(&name)?, now).await.map_err(error_chain)?;
                Ok(json!({ "teamId": team }))
            }
            Self::SetFrameAncestors { team, origins } => {
                set_ancestors(&store, team, &origins).await
            }
            Self::CreateKey { team, environment, expires_in_days, label } => {
                known(store.has_team(team).await.map_err(error_chain)?, "team", team)?;
                let days = expires_in_days.map(|days| days.parse::<i64>()).transpose()?;
                let text = ApiKeyText::new(environment, SystemRandom.random_bytes());
                let key = ApiKey {
                    id: ApiKeyId::from_uuid(id()),
                    team,
                    environment,
                    expires_at: days.map(|days| now + TimeDelta::days(days)),
                    revoked_at: None,
                };
                store.add_key(&key, &text.hash(), &label, now).await.map_err(error_chain)?;
                Ok(json!({ "keyId": key.id, "apiKey": text.expose() }))
            }
            Self::CreateUser { team, email, role } => {
                known(store.has_team(team).await.map_err(error_chain)?, "team", team)?;
                people::create(&store, team, email, role).await
            }
            Self::ResetPassword { email } => people::reset_password(&store, email).await,
            Self::DropSecondFactor { email } => people::drop_second_factor(&store, email).await,
            Self::RotateKey { key_id } => {
                let key = store.key(key_id).await.map_err(error_chain)?;
                let key = key.ok_or_else(|| format!("there is no key {key_id}"))?;
                let text = ApiKeyText::new(key.environment, SystemRandom.random_bytes());
                let rotated = store.rotate_key(key_id, &text.hash()).await.map_err(error_chain)?;
                known(rotated, "key that is not revoked:", key_id)?;
                Ok(json!({ "keyId": key_id, "apiKey": text.expose() }))
            }
            Self::RevokeKey { key_id } => {
                let revoked = store.revoke_key(key_id, now).await.map_err(error_chain)?;
                known(revoked, "key that is not revoked:", key_id)?;
                Ok(json!({ "keyId": key_id }))
            }
            Self::Webhooks(command) => command.run(config, store).await,
            Self::Receivers(command) => command.run(&store).await,
            Self::Templates(command) => command.run(&store).await,
            Self::ExportAttestation { session_id, out } => {
                export(config, &store, session_id, &out).await
            }
            Self::Reseal { new_data_keys } => {
                let resealed = reseal(&store, new_data_keys, now).await?;
                keys.record_current(&*store, &stable_key).await.map_err(error_chain)?;
                Ok(resealed)
            }
            Self::RotateSecretKey => rotate(&keys),
            Self::PublishPlatform { file } => {
                let definition = read_definition(&file)?;
                let (id, pinned) = store.publish(&definition, now).await.map_err(error_chain)?;
                Ok(json!({ "platformId": id, "version": pinned.version }))
            }
        }
    }
}

fn team_name(name: &str) -> Result<&str, Failure> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 200 {
        return Err("a team's name has 1 to 200 characters".into());
    }
    Ok(name)
}

async fn set_ancestors(
    store: &Store,
    team: TeamId,
    origins: &[FrameAncestor],
) -> Result<Value, Failure> {
    if origins.len() > frame_ancestors::MAX_FRAME_ANCESTORS {
        return Err(
            format!("a team has up to {} origins", frame_ancestors::MAX_FRAME_ANCESTORS).into()
        );
    }
    known(store.set_frame_ancestors(team, origins).await.map_err(error_chain)?, "team", team)?;
    let origins: Vec<_> = origins.iter().map(ToString::to_string).collect();
    Ok(json!({ "teamId": team, "origins": origins }))
}

fn rotate(keys: &SecretKeys) -> Result<Value, Failure> {
    let rotated = keys.rotate().map_err(error_chain)?;
    Ok(json!({ "fingerprint": rotated.current, "earlier": rotated.earlier }))
}

fn known(found: bool, kind: &str, id: impl std::fmt::Display) -> Result<(), Failure> {
    if found { Ok(()) } else { Err(format!("there is no {kind} {id}").into()) }
}

/// Reads a definition and refuses what the checks refuse.
pub(crate) fn read_definition(file: &std::path::Path) -> Result<Definition, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let definition: Definition = serde_json::from_str(&text)
        .map_err(|error| format!("{} is no definition: {error}", file.display()))?;
    let flaws = check(&definition);
    let mut flaws: Vec<_> = flaws.iter().map(ToString::to_string).collect();
    if let Some(Err(error)) = prover::descriptor(&definition).map(|plan| plan.check()) {
        flaws.push(format!("attest: {error}"));
    }
    if flaws.is_empty() {
        return Ok(definition);
    }
    Err(format!("{} has flaws: {}", file.display(), flaws.join("; ")).into())
}
