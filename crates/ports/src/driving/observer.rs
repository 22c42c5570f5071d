//! The onlooker's side of the service: a partner's own people who see a session and do not act.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{id::SessionId, session::Status};

use crate::{StoreError, browser::Frame};

/// Opens views of running sessions for whoever has a pass that has not run out.
#[async_trait]
pub trait ObserverService: Send + Sync {
    async fn watch(
        &self,
        id: SessionId,
        pass: &str,
    ) -> Result<Arc<dyn ObserverConnection>, ObserveError>;
}

/// One onlooker's view. Nothing that the applicant writes is in it: no picture while the applicant
/// is waited for, and fields are covered at all times.
#[async_trait]
pub trait ObserverConnection: Send + Sync {
    /// The next thing to see; waits for it. `None` when nothing more will come. Without
    /// `pictures` none of them is given, but what hides one is.
    async fn next(&self, pictures: bool) -> Option<ObserverEvent>;
}

#[derive(Debug, Clone, PartialEq)]
pub enum ObserverEvent {
    State {
        status: Status,
        progress: u8,
        /// Whether pictures are left out for now.
        withheld: bool,
        over: bool,
    },
    Frame(Arc<Frame>),
    /// What was seen before is not to be seen any longer.
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
