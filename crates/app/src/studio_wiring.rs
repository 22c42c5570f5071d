//! The studios of authors, wired to their adapters.

use std::sync::Arc;

use application::{
    administration::PlatformAdministration, drafts::DraftBrowsers, sessions::SessionUseCases,
};
use authoring::{Studios, StudiosParts};
use store::Store;

use crate::{admin::definitions, config::Config, engine::SharedParts};

/// Wires the studios; `sessions` creates those of drafts.
pub(crate) fn studios(
    shared: &SharedParts,
    config: &Config,
    store: &Arc<Store>,
    sessions: Arc<SessionUseCases>,
) -> Studios {
    let definitions = Arc::new(definitions());
    let instance = config.instances.as_ref().map(|_| shared.node);
    let places = sessions.places.clone();
    let browsers = DraftBrowsers {
        sessions,
        drafts: shared.drafts.clone(),
        hub: shared.engine.hub.clone(),
        instance,
        store: store.clone(),
        teams: store.clone(),
        keys: store.clone(),
        clock: shared.clock.clone(),
        random: shared.random.clone(),
    };
    Studios::new(StudiosParts {
        syntax: definitions.syntax.clone(),
        definitions,
        browsers: Arc::new(browsers),
        drafts: store.clone(),
        catalogue: store.clone(),
        platforms: Arc::new(PlatformAdministration {
            catalogue: store.clone(),
            clock: shared.clock.clone(),
        }),
        audit: store.clone(),
        places,
        clock: shared.clock.clone(),
        random: shared.random.clone(),
        instance,
        runtime: shared.runtime.clone(),
    })
}
