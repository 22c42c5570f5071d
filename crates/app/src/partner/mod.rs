//! The partner's use cases.

mod compare;
mod create;
mod gate;
mod portable;
mod read;

use std::sync::Arc;

use adapters::{diesel::Store, places::IsoPlaces};
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

pub(crate) use self::gate::Gatekeeper;
use crate::{advance::Core, channels, config::Config, limiters::Limiters};

/// What partners can choose from.
pub(crate) struct Offers {
    pub(crate) catalogue: Arc<dyn Catalogue>,
    pub(crate) templates: Arc<dyn TemplateStore>,
    pub(crate) places: Arc<dyn Places>,
    /// Those that this deployment has.
    pub(crate) channels: Arc<[Channel]>,
}

/// What partners can do.
pub(crate) struct Partners {
    pub(crate) core: Arc<Core>,
    pub(crate) recordings: Arc<dyn RecordingQueue>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) notifications: Arc<dyn NotificationQueue>,
    pub(crate) receivers: Arc<dyn ReceiverStore>,
    pub(crate) templates: Arc<dyn TemplateStore>,
    pub(crate) places: Arc<dyn Places>,
    /// Those that this deployment has.
    pub(crate) channels: Arc<[Channel]>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    /// Of links that a team sends to one address or number.
    pub(crate) recipient_limit: Option<Limit>,
}

impl Partners {
    pub(crate) fn open(
        config: &Config,
        core: &Arc<Core>,
        store: &Arc<Store>,
        vault: Arc<dyn RecordingVault>,
        (limiter, _): &Limiters,
    ) -> Self {
        Self {
            core: core.clone(),
            recordings: store.clone(),
            notifications: store.clone(),
            receivers: store.clone(),
            templates: store.clone(),
            vault,
            places: Arc::new(IsoPlaces::new(config.countries.as_deref())),
            channels: channels::active(&config.mailing.messages).into(),
            limiter: limiter.clone(),
            recipient_limit: config.limits.recipient,
        }
    }
}
