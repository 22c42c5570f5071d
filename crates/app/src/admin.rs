//! `avouch admin …`: one JSON object on stdout for each command.

use std::{fs, path::PathBuf, time::Duration};

use adapters::{
    diesel::Store,
    system::{SystemChance, SystemClock},
};
use chrono::TimeDelta;
use clap::Subcommand;
use domain::{
    ancestors::{self, Ancestor},
    api_key::{ApiKey, Environment},
    id::{ApiKeyId, TeamId, WebhookId},
    secret::Secret,
    webhook::{Header, Webhook},
    workflow::{Definition, check},
};
use ports::{
    catalogue::Catalogue as _,
    clock::{Chance as _, Clock as _},
    key_store::KeyStore as _,
    webhook_store::WebhookStore as _,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    config::Config,
    kept::{explain, open_store},
    keys::ApiKeyText,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Makes a team; prints {"teamId"}
    CreateTeam { name: String },
    /// Says whose pages may show the team's sessions, by their origins; none: anybody's
    SetFrameAncestors {
        #[arg(long)]
        team: TeamId,
        origins: Vec<Ancestor>,
    },
    /// Makes an API key; prints {"keyId","apiKey"}, the only time the key is shown
    CreateKey {
        #[arg(long)]
        team: TeamId,
        #[arg(long)]
        environment: Environment,
        #[arg(long, value_parser = ["30", "90", "180"])]
        expires_in_days: Option<String>,
    },
    /// Gives a key record a new key; the old one opens nothing from now on
    RotateKey { key_id: ApiKeyId },
    /// Revokes a key record
    RevokeKey { key_id: ApiKeyId },
    /// Makes a webhook; prints {"webhookId","secret"}
    CreateWebhook {
        #[arg(long)]
        team: TeamId,
        #[arg(long)]
        url: String,
        /// 'NAME: VALUE', sent with every delivery
        #[arg(long)]
        header: Option<String>,
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=120))]
        timeout_seconds: Option<u8>,
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..=10))]
        retries: Option<u8>,
        #[arg(long)]
        inactive: bool,
    },
    /// Publishes a platform definition; prints {"platformId","version"}
    PublishPlatform { file: PathBuf },
}

impl Admin {
    pub(crate) async fn run(self, config: &Config) -> Result<Value, Failure> {
        let (store, _) = open_store(config).await?;
        let now = SystemClock.now();
        let id = || Uuid::from_u128(SystemChance.id());
        match self {
            Self::CreateTeam { name } => {
                let team = TeamId::from_uuid(id());
                store.add_team(team, team_name(&name)?, now).await.map_err(explain)?;
                Ok(json!({ "teamId": team }))
            }
            Self::SetFrameAncestors { team, origins } => {
                set_ancestors(&store, team, &origins).await
            }
            Self::CreateKey { team, environment, expires_in_days } => {
                known(store.has_team(team).await.map_err(explain)?, "team", team)?;
                let days = expires_in_days.map(|days| days.parse::<i64>()).transpose()?;
                let text = ApiKeyText::new(environment, SystemChance.bits());
                let key = ApiKey {
                    id: ApiKeyId::from_uuid(id()),
                    team,
                    environment,
                    expires_at: days.map(|days| now + TimeDelta::days(days)),
                    revoked_at: None,
                };
                store.add_key(&key, &text.hash(), now).await.map_err(explain)?;
                Ok(json!({ "keyId": key.id, "apiKey": text.expose() }))
            }
            Self::RotateKey { key_id } => {
                let key = store.key(key_id).await.map_err(explain)?;
                let key = key.ok_or_else(|| format!("there is no key {key_id}"))?;
                let text = ApiKeyText::new(key.environment, SystemChance.bits());
                let rotated = store.rotate_key(key_id, &text.hash()).await.map_err(explain)?;
                known(rotated, "key that is not revoked:", key_id)?;
                Ok(json!({ "keyId": key_id, "apiKey": text.expose() }))
            }
            Self::RevokeKey { key_id } => {
                let revoked = store.revoke_key(key_id, now).await.map_err(explain)?;
                known(revoked, "key that is not revoked:", key_id)?;
                Ok(json!({ "keyId": key_id }))
            }
            Self::CreateWebhook { team, url, header, timeout_seconds, retries, inactive } => {
                known(store.has_team(team).await.map_err(explain)?, "team", team)?;
                check_url(config, &url)?;
                let webhook = Webhook {
                    id: WebhookId::from_uuid(id()),
                    team,
                    url,
                    header: header.as_deref().map(read_header).transpose()?,
                    secret: secret(),
                    timeout: timeout_seconds.map_or(Webhook::DEFAULT_TIMEOUT, |seconds| {
                        Duration::from_secs(seconds.into())
                    }),
                    retries: retries.unwrap_or(Webhook::DEFAULT_RETRIES),
                    active: !inactive,
                    retiring: None,
                };
                store.add_webhook(&webhook, &[], now).await.map_err(explain)?;
                Ok(json!({ "webhookId": webhook.id, "secret": webhook.secret.expose() }))
            }
            Self::PublishPlatform { file } => {
                let definition = read_definition(&file)?;
                let (id, pinned) = store.publish(&definition, now).await.map_err(explain)?;
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
    origins: &[Ancestor],
) -> Result<Value, Failure> {
    if origins.len() > ancestors::MOST {
        return Err(format!("a team has up to {} origins", ancestors::MOST).into());
    }
    known(store.set_ancestors(team, origins).await.map_err(explain)?, "team", team)?;
    let origins: Vec<_> = origins.iter().map(ToString::to_string).collect();
    Ok(json!({ "teamId": team, "origins": origins }))
}

fn known(found: bool, kind: &str, id: impl std::fmt::Display) -> Result<(), Failure> {
    if found { Ok(()) } else { Err(format!("there is no {kind} {id}").into()) }
}

fn secret() -> Secret {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    Secret::new(format!("whsec_{}", STANDARD.encode(SystemChance.bits())))
}

fn check_url(config: &Config, text: &str) -> Result<(), Failure> {
    let url = url::Url::parse(text).map_err(|error| format!("the URL cannot be read: {error}"))?;
    let host = url.host_str().ok_or("the URL has no host")?;
    let named = config.egress.names(host, url.port_or_known_default().unwrap_or(0));
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL must not hold credentials: use --header".into());
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if named => Ok(()),
        _ => {
            Err("a webhook's URL must be https; http only for a host named in AVOUCH_EGRESS_ALLOW"
                .into())
        }
    }
}

/// Names a webhook's own header must not take: they are ours, or HTTP's.
const TAKEN: &[&str] = &[
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "user-agent",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-webhook-signature",
];

fn read_header(text: &str) -> Result<Header, Failure> {
    let (name, value) = text.split_once(':').ok_or("a header reads 'NAME: VALUE'")?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > 100 || !name.bytes().all(token) {
        return Err("a header's name has 1 to 100 letters, digits and hyphens".into());
    }
    if TAKEN.contains(&name.as_str()) {
        return Err(format!("the header {name} cannot be set").into());
    }
    if value.is_empty() || value.len() > 2000 || !value.bytes().all(|b| (32..127).contains(&b)) {
        return Err("a header's value has 1 to 2000 printable ASCII characters".into());
    }
    Ok(Header { name, value: Secret::new(value.to_owned()) })
}

/// Reads a definition and refuses what the checks refuse.
pub(crate) fn read_definition(file: &std::path::Path) -> Result<Definition, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let definition: Definition = serde_json::from_str(&text)
        .map_err(|error| format!("{} is no definition: {error}", file.display()))?;
    let flaws = check(&definition);
    if flaws.is_empty() {
        return Ok(definition);
    }
    let flaws: Vec<_> = flaws.iter().map(ToString::to_string).collect();
    Err(format!("{} has flaws: {}", file.display(), flaws.join("; ")).into())
}
