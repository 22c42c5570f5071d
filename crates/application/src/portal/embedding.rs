//! Whose pages may show a team's sessions.

use async_trait::async_trait;
use domain::{
    account::Right,
    ancestors::{Ancestor, MOST},
};
use ports::driving::{EmbeddingService, PortalError, Visitor};

use super::People;

#[async_trait]
impl EmbeddingService for People {
    async fn embed_origins(&self, visitor: &Visitor) -> Result<Vec<Ancestor>, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.keys.team_ancestors(visitor.team).await?)
    }

    async fn set_embed_origins(
        &self,
        visitor: &Visitor,
        origins: Vec<Ancestor>,
    ) -> Result<(), PortalError> {
        visitor.must(Right::Govern)?;
        if origins.len() > MOST {
            return Err(PortalError::Invalid(format!("a team has up to {MOST} origins")));
        }
        let text: Vec<_> = origins.iter().map(ToString::to_string).collect();
        self.note(visitor, "embedding.set", &text.join(" ")).await?;
        self.keys.set_ancestors(visitor.team, &origins).await?;
        Ok(())
    }
}
