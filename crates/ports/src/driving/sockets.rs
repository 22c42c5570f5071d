//! Where the sockets of a session are served.

use async_trait::async_trait;

use crate::instances::{RelayedSocket, SocketRequest};

/// Finds the instance that serves the sockets of a session.
#[async_trait]
pub trait SocketRouter: Send + Sync {
    /// Opens the socket at the instance that holds the session's browser or, if there is none yet, at the
    /// one that begins it. `None` if this instance serves it: it holds the browser, the session is not
    /// known or is over, or the other instance does not answer.
    async fn relay(&self, request: SocketRequest) -> Option<RelayedSocket>;
}
