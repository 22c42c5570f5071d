//! The partner's use cases.

mod compare;
mod create;
mod gate;
mod portable;
mod read;

use std::sync::Arc;

use domain::{notification::Channel, rate::Limit};
use ports::{
    catalogue::Catalogue,
    notifier::NotificationQueue,
    places::Places,
    rate_limiter::RateLimiter,
    receiver_store::ReceiverStore,
    recording::{RecordingQueue, RecordingVault},
    template_store::TemplateStore,
};

pub use self::gate::Gatekeeper;
use crate::advance::Core;

/// What partners can choose from.
pub struct Offers {
    pub catalogue: Arc<dyn Catalogue>,
    pub templates: Arc<dyn TemplateStore>,
    pub places: Arc<dyn Places>,
    /// Those that this deployment has.
    pub channels: Arc<[Channel]>,
}

/// What partners can do.
pub struct Partners {
    pub core: Arc<Core>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub vault: Arc<dyn RecordingVault>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub receivers: Arc<dyn ReceiverStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub places: Arc<dyn Places>,
    /// Those that this deployment has.
    pub channels: Arc<[Channel]>,
    pub limiter: Arc<dyn RateLimiter>,
    /// Of links that a team sends to one address or number.
    pub recipient_limit: Option<Limit>,
}
