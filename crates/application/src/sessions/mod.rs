//! The partner's use cases.

mod authenticate;
mod compare;
mod create;
mod export;
mod read;

use std::sync::Arc;

use domain::{notification::Channel, rate::RateLimit};
use ports::{
    catalogue::Catalogue,
    contact_store::ContactStore,
    notifier::NotificationQueue,
    places::Places,
    rate_limiter::RateLimiter,
    recording::{RecordingQueue, RecordingVault},
    template_store::TemplateStore,
};

pub use self::authenticate::KeyAuthenticator;
use crate::advance::Core;

/// What partners can choose from.
pub struct LookupUseCases {
    pub catalogue: Arc<dyn Catalogue>,
    pub templates: Arc<dyn TemplateStore>,
    pub places: Arc<dyn Places>,
    /// Those that this deployment has.
    pub channels: Arc<[Channel]>,
}

/// What partners can do.
pub struct SessionUseCases {
    pub core: Arc<Core>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub vault: Arc<dyn RecordingVault>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub receivers: Arc<dyn ContactStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub places: Arc<dyn Places>,
    /// Those that this deployment has.
    pub channels: Arc<[Channel]>,
    pub limiter: Arc<dyn RateLimiter>,
    /// Of links that a team sends to one address or number.
    pub recipient_limit: Option<RateLimit>,
}
