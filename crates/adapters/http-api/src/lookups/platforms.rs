//! `GET /partner/browser-platforms`

use actix_web::{HttpResponse, web};
use domain::{
    webhook::wire_time,
    workflow::{PlatformProfile, PromptKind},
};
use ports::driving::{HealthState, LookupService, PlatformHealth, PlatformListing};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    caller::LookupCaller, envelope::Envelope, error::ApiError, icons::PublicUrl,
    lookups::cache::ResponseCache, openapi::ActionKind,
};

/// Platforms
///
/// The platforms of the key's environment: sandbox platforms for development keys, real ones for
/// production keys.
#[utoipa::path(
    get,
    path = "/partner/browser-platforms",
    tag = "Lookups",
    operation_id = "listPlatforms",
    responses((status = 200, description = "The platforms.", body = Envelope<Vec<WirePlatform>>)),
)]
pub(crate) async fn platforms(
    lookups: web::Data<dyn LookupService>,
    kept: web::Data<ResponseCache>,
    public_url: web::Data<PublicUrl>,
    LookupCaller(caller, revision): LookupCaller,
) -> Result<HttpResponse, ApiError> {
    let environment = caller.environment;
    if let Some(answer) = kept.platforms(environment, revision) {
        return Ok(answer);
    }
    let platforms = lookups.platforms(environment).await?;
    let shown = |platform| WirePlatform::new(platform, &public_url);
    let platforms: Vec<_> = platforms.into_iter().map(shown).collect();
    kept.cache_platforms(environment, revision, &platforms)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Platform)]
pub(crate) struct WirePlatform {
    #[schema(example = 1)]
    id: i32,
    #[schema(example = "acme-sandbox")]
    name: String,
    display_name: String,
    description: String,
    icon: String,
    login_url: String,
    /// Whether `customUrl` may be given.
    allow_custom_url: bool,
    config: PlatformConfig,
    is_active: bool,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

/// What can be known of a platform. Further members may be added.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlatformConfig {
    /// The version of the platform's definition that new sessions run.
    #[schema(example = "1.0.0")]
    workflow_version: String,
    /// The JSON Schema (draft 2020-12) of `extractedData`. `x-pii` marks what identifies or describes a
    /// person, `x-attested` what can be attested, and `x-currency` the ISO 4217 code of an amount.
    #[schema(value_type = Object)]
    data_schema: Value,
    /// What applicants may be asked to do: values of `nextAction.kind`.
    #[schema(value_type = Vec<ActionKind>)]
    actions: Vec<&'static str>,
    /// What `generateAttestation` attests; `null` if the platform cannot be attested.
    #[schema(required = true)]
    attestation: Option<PlatformAttestation>,
    /// The languages of the instructions for applicants, as BCP 47 tags. In other languages, general
    /// instructions take their place.
    #[schema(example = json!(["en", "de"]))]
    languages: Vec<String>,
    /// A pattern for the path of `customUrl`; `*` matches any sequence of characters. `null` without
    /// `allowCustomUrl`.
    #[schema(required = true, example = "/users/*")]
    custom_url_pattern: Option<String>,
    /// The time in which half of the sessions of the last 24 hours were complete, in seconds; `null`
    /// for fewer than five.
    #[schema(required = true)]
    expected_seconds: Option<u32>,
    health: Health,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlatformAttestation {
    /// `zktls-full`, `zktls-request` or `full-reveal`.
    mode: &'static str,
    fields: Vec<String>,
}

/// How the sessions of all partners ended on this platform. It may be a minute old.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlatformHealth)]
pub(crate) struct Health {
    /// Runs that ended since then are counted.
    #[schema(format = DateTime)]
    since: String,
    /// `ok`; `changed` if the site seems to have changed; `unknown` for fewer than five runs.
    #[schema(example = "ok")]
    state: &'static str,
    versions: Vec<VersionHealth>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlatformVersionHealth)]
pub(crate) struct VersionHealth {
    version: String,
    /// The runs that collected the data, and those that failed for a reason that was not the
    /// applicant's.
    runs: u64,
    /// The runs in which the applicant stopped, or could not sign in.
    abandoned: u64,
    /// The share of `runs` that collected the data; `null` for fewer than five.
    #[schema(required = true, minimum = 0, maximum = 1)]
    success_rate: Option<f64>,
    /// Half of them took at most this long; `null` for fewer than five.
    #[schema(required = true)]
    median_seconds: Option<u32>,
    /// The step at which most of the others failed.
    #[schema(required = true)]
    failing_node: Option<String>,
}

impl Health {
    fn new(health: PlatformHealth, current: &str) -> Self {
        let state = match health.state(current) {
            HealthState::Changed => "changed",
            HealthState::Ok => "ok",
            HealthState::Unknown => "unknown",
        };
        let versions = health.versions.into_iter().map(|(version, health)| VersionHealth {
            version,
            runs: health.runs,
            abandoned: health.abandoned,
            success_rate: health.success_rate,
            median_seconds: health.median_seconds,
            failing_node: health.failing_node,
        });
        Self { since: wire_time(health.since), state, versions: versions.collect() }
    }
}

impl PlatformConfig {
    fn new(
        version: String,
        profile: Option<PlatformProfile>,
        health: PlatformHealth,
    ) -> PlatformConfig {
        let current = health.versions.iter().find(|(of, _)| *of == version);
        let expected_seconds = current.and_then(|(_, health)| health.median_seconds);
        let health = Health::new(health, &version);
        let profile = profile.unwrap_or_default();
        Self {
            workflow_version: version,
            data_schema: profile.data_schema,
            actions: profile.prompts.into_iter().map(PromptKind::as_str).collect(),
            attestation: profile
                .attestation
                .map(|(mode, fields)| PlatformAttestation { mode: mode.as_str(), fields }),
            languages: profile.languages,
            custom_url_pattern: profile.custom_url_pattern,
            expected_seconds,
            health,
        }
    }
}

impl WirePlatform {
    fn new(listing: PlatformListing, public_url: &PublicUrl) -> Self {
        let PlatformListing { platform, profile, health } = listing;
        let has_custom_url =
            profile.as_ref().is_some_and(|profile| profile.custom_url_pattern.is_some());
        Self {
            id: platform.id.0,
            name: platform.name,
            display_name: platform.display_name,
            description: platform.description,
            icon: public_url.icon(&platform.icon),
            login_url: platform.login_url,
            allow_custom_url: has_custom_url,
            config: PlatformConfig::new(platform.version, profile, health),
            is_active: platform.is_active,
            created_at: wire_time(platform.created_at),
            updated_at: wire_time(platform.updated_at),
        }
    }
}
