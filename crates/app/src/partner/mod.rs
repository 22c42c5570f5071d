//! The partner's use cases.

mod create;
mod read;

use std::sync::Arc;

use ports::{clock::Clock, key_store::KeyStore, places::Places};

use crate::advance::Core;

/// What partners can do.
pub(crate) struct Partners {
    pub(crate) core: Arc<Core>,
    pub(crate) places: Arc<dyn Places>,
}

/// Finds callers by their keys.
pub(crate) struct Keys {
    pub(crate) store: Arc<dyn KeyStore>,
    pub(crate) clock: Arc<dyn Clock>,
}
