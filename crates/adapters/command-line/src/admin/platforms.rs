//! `avouch admin publish-platform` and the versions of platforms.

use std::path::PathBuf;

use clap::Subcommand;
use domain::{
    id::PlatformId,
    platform::{ActiveVersions, Canary, CanaryShare, VersionChange},
    webhook::wire_time,
};
use ports::driving::{DefinitionService, PlatformAdminService};
use serde_json::{Value, json};

use crate::{CommandError, read_definition, replay::replay_fixtures};

#[derive(Debug, Subcommand)]
pub enum PlatformCommand {
    /// Publishes a platform definition; prints {"platformId","version"}
    PublishPlatform {
        file: PathBuf,
        /// Publishes it only if a run on this fixture leads to what the fixture expects; may be repeated
        #[arg(long)]
        fixture: Vec<PathBuf>,
        /// Has this share of new sessions run it, 1 to 99; the others keep the current version
        #[arg(long, value_parser = canary_share)]
        canary_percent: Option<CanaryShare>,
    },
    /// Prints a platform's versions, the newest first, as {"platformId","version","canary","versions"}
    ListPlatformVersions { platform_id: i32 },
    /// Chooses the version that new sessions run, for example an earlier one; prints
    /// {"platformId","version","canary"}
    SetPlatformVersion {
        platform_id: i32,
        version: String,
        /// A version that a share of new sessions runs instead
        #[arg(long, requires = "canary_percent")]
        canary: Option<String>,
        /// The share, 1 to 99
        #[arg(long, requires = "canary", value_parser = canary_share)]
        canary_percent: Option<CanaryShare>,
    },
}

fn canary_share(text: &str) -> Result<CanaryShare, String> {
    let percent = text.parse().ok().and_then(CanaryShare::percent);
    percent.ok_or_else(|| "must be a whole number from 1 to 99".to_owned())
}

impl PlatformCommand {
    pub(super) async fn run(
        self,
        platforms: &dyn PlatformAdminService,
        definitions: &dyn DefinitionService,
    ) -> Result<Value, CommandError> {
        match self {
            Self::PublishPlatform { file, fixture, canary_percent } => {
                let definition = read_definition(definitions, &file)?;
                let replay = replay_fixtures(definitions, &definition, &fixture)?;
                if !replay.passed {
                    let text = replay.text;
                    return Err(format!("not published, since a fixture differs:\n{text}").into());
                }
                let (id, version) = platforms.publish(&definition, canary_percent).await?;
                Ok(json!({ "platformId": id, "version": version.version }))
            }
            Self::ListPlatformVersions { platform_id } => {
                let found = platforms.versions(PlatformId(platform_id)).await?;
                let (platform, versions) =
                    found.ok_or_else(|| format!("there is no platform {platform_id}"))?;
                let versions: Vec<_> = versions
                    .into_iter()
                    .map(|published| {
                        json!({
                            "version": published.definition.version,
                            "sha256": published.definition.sha256,
                            "publishedAt": wire_time(published.published_at),
                        })
                    })
                    .collect();
                Ok(json!({
                    "platformId": platform_id,
                    "version": platform.version,
                    "canary": platform.canary.as_ref().map(canary_value),
                    "versions": versions,
                }))
            }
            Self::SetPlatformVersion { platform_id, version, canary, canary_percent } => {
                let canary =
                    canary.zip(canary_percent).map(|(version, share)| Canary { version, share });
                if canary.as_ref().is_some_and(|canary| canary.version == version) {
                    return Err("--canary must be another version than the current one".into());
                }
                let to = ActiveVersions { version: version.clone(), canary };
                let shown = to.canary.as_ref().map(canary_value);
                let change = VersionChange { from: None, to };
                platforms.choose_version(PlatformId(platform_id), &change).await?;
                Ok(json!({ "platformId": platform_id, "version": version, "canary": shown }))
            }
        }
    }
}

fn canary_value(canary: &Canary) -> Value {
    json!({ "version": canary.version, "percent": canary.share.as_percent() })
}
