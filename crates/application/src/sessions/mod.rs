//! The use cases of the partner API.

mod authenticate;
mod compare;
mod create;
mod export;
mod service;

use std::sync::Arc;

use domain::{notification::Channel, rate::RateLimit};
use ports::{
    catalogue::Catalogue,
    contact_store::ContactStore,
    key_store::TeamStore,
    notifier::NotificationQueue,
    places::Places,
    random::RandomSource,
    rate_limiter::RateLimiter,
    recording::{RecordingQueue, RecordingVault},
    session_store::SessionQueries,
    template_store::TemplateStore,
};

pub use self::authenticate::KeyAuthenticator;
use crate::{
    advance::SessionEngine, attestations::Attestations,
    definition_statistics::PlatformHealthReader, urls::Urls,
};

/// Lists what partners can choose from.
pub struct LookupUseCases {
    pub catalogue: Arc<dyn Catalogue>,
    pub templates: Arc<dyn TemplateStore>,
    pub places: Arc<dyn Places>,
    /// The channels of this deployment.
    pub channels: Arc<[Channel]>,
    pub health: PlatformHealthReader,
}

/// Creates, reads, ends and erases sessions for partners.
pub struct SessionUseCases {
    pub engine: Arc<SessionEngine>,
    pub sessions: Arc<dyn SessionQueries>,
    pub urls: Arc<Urls>,
    pub attestations: Arc<Attestations>,
    pub catalogue: Arc<dyn Catalogue>,
    pub random: Arc<dyn RandomSource>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub vault: Arc<dyn RecordingVault>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub contacts: Arc<dyn ContactStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub teams: Arc<dyn TeamStore>,
    pub places: Arc<dyn Places>,
    /// The channels of this deployment.
    pub channels: Arc<[Channel]>,
    pub limiter: Arc<dyn RateLimiter>,
    /// The limit for links that a team sends to one address or number; `None` means no limit.
    pub recipient_limit: Option<RateLimit>,
}

#[cfg(test)]
mod tests;
