//! The partner's use cases.

mod compare;
mod create;
mod gate;
mod read;

use std::sync::Arc;

use ports::{
    catalogue::Catalogue,
    notifier::NotificationQueue,
    places::Places,
    receiver_store::ReceiverStore,
    recording::{RecordingQueue, RecordingVault},
};

pub(crate) use self::gate::Gatekeeper;
use crate::advance::Core;

/// What partners can choose from.
pub(crate) struct Offers {
    pub(crate) catalogue: Arc<dyn Catalogue>,
    pub(crate) places: Arc<dyn Places>,
}

/// What partners can do.
pub(crate) struct Partners {
    pub(crate) core: Arc<Core>,
    pub(crate) recordings: Arc<dyn RecordingQueue>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) notifications: Arc<dyn NotificationQueue>,
    pub(crate) receivers: Arc<dyn ReceiverStore>,
    pub(crate) places: Arc<dyn Places>,
}
