//! The partner's use cases, wired to their adapters.

use std::sync::Arc;

use application::sessions::SessionUseCases;
use ports::{catalogue::Catalogue, recording::RecordingVault};
use store::Store;
use system::places::IsoPlaces;

use crate::{channels, config::Config, engine::SharedParts, limiters::Limiters};

pub(crate) fn partners(
    config: &Config,
    shared: &SharedParts,
    store: &Arc<Store>,
    catalogue: Arc<dyn Catalogue>,
    vault: Arc<dyn RecordingVault>,
    (limiter, _): &Limiters,
) -> SessionUseCases {
    SessionUseCases {
        engine: shared.engine.clone(),
        urls: shared.urls.clone(),
        attestations: shared.attestations.clone(),
        catalogue,
        sessions: shared.pipelined.clone(),
        random: shared.random.clone(),
        recordings: store.clone(),
        notifications: store.clone(),
        contacts: store.clone(),
        templates: store.clone(),
        teams: store.clone(),
        vault,
        places: Arc::new(IsoPlaces::new(config.countries.as_deref())),
        channels: channels::active(&config.mailing.messages).into(),
        limiter: limiter.clone(),
        recipient_limit: config.limits.recipient,
    }
}
