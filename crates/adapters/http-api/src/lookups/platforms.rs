//! `GET /partner/browser-platforms`

use actix_web::{HttpResponse, web};
use domain::{platform::Platform, webhook::wire_time};
use ports::driving::LookupService;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::LookupCaller, envelope::Envelope, error::ApiError, icons::PublicUrl,
    lookups::cache::ResponseCache,
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlatformConfig {
    /// The version of the platform's definition that new sessions run.
    #[schema(example = "1.0.0")]
    workflow_version: String,
}

impl WirePlatform {
    fn new(platform: Platform, public_url: &PublicUrl) -> Self {
        Self {
            id: platform.id.0,
            name: platform.name,
            display_name: platform.display_name,
            description: platform.description,
            icon: public_url.icon(&platform.icon),
            login_url: platform.login_url,
            allow_custom_url: false,
            config: PlatformConfig { workflow_version: platform.version },
            is_active: platform.is_active,
            created_at: wire_time(platform.created_at),
            updated_at: wire_time(platform.updated_at),
        }
    }
}
