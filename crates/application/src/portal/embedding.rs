//! The origins whose pages may embed a team's sessions.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Permission,
    frame_ancestors::{FrameAncestor, MAX_FRAME_ANCESTORS},
};
use ports::{
    driving::{EmbeddingService, PortalError, SignedInUser},
    key_store::TeamStore,
};

use super::AuditTrail;

/// Implements [`EmbeddingService`].
pub struct Embedding {
    pub teams: Arc<dyn TeamStore>,
    pub audit: AuditTrail,
}

#[async_trait]
impl EmbeddingService for Embedding {
    async fn embed_origins(&self, user: &SignedInUser) -> Result<Vec<FrameAncestor>, PortalError> {
        user.require(Permission::View)?;
        Ok(self.teams.frame_ancestors(user.team).await?)
    }

    async fn set_embed_origins(
        &self,
        user: &SignedInUser,
        origins: Vec<FrameAncestor>,
    ) -> Result<(), PortalError> {
        user.require(Permission::ManageTeam)?;
        if origins.len() > MAX_FRAME_ANCESTORS {
            return Err(PortalError::Invalid(format!(
                "a team can have up to {MAX_FRAME_ANCESTORS} allowed origins"
            )));
        }
        let text: Vec<_> = origins.iter().map(ToString::to_string).collect();
        self.audit.record(user, "embedding.set", &text.join(" ")).await?;
        self.teams.set_frame_ancestors(user.team, &origins).await?;
        Ok(())
    }
}
