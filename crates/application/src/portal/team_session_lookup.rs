//! Finding a session of a team.

use std::sync::Arc;

use domain::{api_key::ApiKey, id::SessionId, session::Session};
use ports::{
    driving::{PortalError, SignedInUser},
    key_store::KeyStore,
    session_store::SessionStore,
};

/// Finds sessions of the user's team, whichever of its keys they were created with.
#[derive(Clone)]
pub struct TeamSessionLookup {
    pub sessions: Arc<dyn SessionStore>,
    pub keys: Arc<dyn KeyStore>,
}

impl TeamSessionLookup {
    /// Returns a session of the user's team, and the key that it was created with.
    ///
    /// # Errors
    /// [`PortalError::NotFound`]: there is no such session, or another team's key created it.
    pub(super) async fn find(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<(Session, ApiKey), PortalError> {
        let absent = PortalError::NotFound("session");
        let Some(session) = self.sessions.find_unscoped(id).await? else { return Err(absent) };
        let key = self.keys.key(session.owner).await?.filter(|key| key.team == user.team);
        key.map(|key| (session, key)).ok_or(absent)
    }
}
