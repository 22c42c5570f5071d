//! Whose pages may show a team's sessions.

use async_trait::async_trait;
use domain::{
    account::Permission,
    frame_ancestors::{FrameAncestor, MAX_FRAME_ANCESTORS},
};
use ports::driving::{EmbeddingService, PortalError, SignedInUser};

use super::People;

#[async_trait]
impl EmbeddingService for People {
    async fn embed_origins(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Vec<FrameAncestor>, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.keys.frame_ancestors(visitor.team).await?)
    }

    async fn set_embed_origins(
        &self,
        visitor: &SignedInUser,
        origins: Vec<FrameAncestor>,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Govern)?;
        if origins.len() > MAX_FRAME_ANCESTORS {
            return Err(PortalError::Invalid(format!(
                "a team has up to {MAX_FRAME_ANCESTORS} origins"
            )));
        }
        let text: Vec<_> = origins.iter().map(ToString::to_string).collect();
        self.note(visitor, "embedding.set", &text.join(" ")).await?;
        self.keys.set_frame_ancestors(visitor.team, &origins).await?;
        Ok(())
    }
}
