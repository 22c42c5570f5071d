//! The partner's use cases, wired to their adapters.

use std::sync::Arc;

use application::{advance::Core, sessions::SessionUseCases};
use ports::recording::RecordingVault;
use store::Store;
use system::places::IsoPlaces;

use crate::{channels, config::Config, limiters::Limiters};

pub(crate) fn partners(
    config: &Config,
    core: &Arc<Core>,
    store: &Arc<Store>,
    vault: Arc<dyn RecordingVault>,
    (limiter, _): &Limiters,
) -> SessionUseCases {
    SessionUseCases {
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
