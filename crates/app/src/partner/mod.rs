//! The partner's use cases.

mod create;
mod gate;
mod read;

use std::sync::Arc;

use ports::places::Places;

pub(crate) use self::gate::Gatekeeper;
use crate::advance::Core;

/// What partners can do.
pub(crate) struct Partners {
    pub(crate) core: Arc<Core>,
    pub(crate) places: Arc<dyn Places>,
}
