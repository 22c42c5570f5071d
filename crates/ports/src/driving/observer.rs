//! The service for observers: people of the partner who watch a session and send no input.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{id::SessionId, session::Status};

use crate::{StoreError, browser::Frame};

/// Opens observer connections to running sessions with a valid stream token.
#[async_trait]
pub trait ObserverService: Send + Sync {
    async fn watch(
        &self,
        id: SessionId,
        token: &str,
    ) -> Result<Arc<dyn ObserverConnection>, ObserveError>;
}

/// The connection of one observer. It contains no input of the applicant: no frame is sent while
/// the session waits for the applicant, and fields are always redacted.
#[async_trait]
pub trait ObserverConnection: Send + Sync {
    /// Waits for the next event. `None` if no more events will come. Without `frames`, no frame is
    /// returned, but [`ObserverEvent::Covered`] is.
    async fn next(&self, frames: bool) -> Option<ObserverEvent>;
}

#[derive(Debug, Clone, PartialEq)]
pub enum ObserverEvent {
    State {
        status: Status,
        progress: u8,
        /// Whether frames are withheld for now.
        withheld: bool,
        over: bool,
    },
    Frame(Arc<Frame>),
    /// The last frame must no longer be shown.
    Covered,
}

#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error("there is no such session, or the pass has run out")]
    NotFound,
    #[error("as many as may are watching already")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}
