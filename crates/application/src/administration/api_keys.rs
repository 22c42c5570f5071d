//! Creates, rotates and revokes the API keys of any team.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{api_key::ApiKey, id::ApiKeyId, secret::Secret};
use ports::{
    clock::Clock,
    driving::{AdministrationError, ApiKeyAdminService, IssuedApiKey, NewApiKey},
    key_store::{KeyStore, TeamStore},
    random::RandomSource,
};
use uuid::Uuid;

use super::{require, require_team};
use crate::{api_keys::ApiKeyText, trusted_keys::once_nobody_trusts_the_earlier_value};

const USABLE_KEY: &str = "key that is not revoked:";

/// Implements [`ApiKeyAdminService`].
pub struct ApiKeyAdministration {
    pub teams: Arc<dyn TeamStore>,
    pub keys: Arc<dyn KeyStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl ApiKeyAdminService for ApiKeyAdministration {
    async fn create(&self, new: NewApiKey) -> Result<IssuedApiKey, AdministrationError> {
        require_team(&*self.teams, new.team).await?;
        let now = self.clock.now();
        let text = ApiKeyText::new(new.environment, self.random.random_bytes());
        let key = ApiKey {
            id: ApiKeyId::from_uuid(Uuid::from_u128(self.random.new_id())),
            team: new.team,
            environment: new.environment,
            expires_at: new.expires_in.map(|validity| now + validity),
            revoked_at: None,
        };
        self.keys.add_key(&key, &text.hash(), &new.label, now).await?;
        Ok(issued(key.id, &text))
    }

    async fn rotate(&self, id: ApiKeyId) -> Result<IssuedApiKey, AdministrationError> {
        let key = self.keys.key(id).await?;
        let key =
            key.ok_or_else(|| AdministrationError::NotFound { kind: "key", id: id.to_string() })?;
        let text = ApiKeyText::new(key.environment, self.random.random_bytes());
        let is_rotated = self.keys.rotate_key(id, &text.hash()).await?;
        // Also if another caller has revoked the key a moment before.
        once_nobody_trusts_the_earlier_value().await;
        require(is_rotated, USABLE_KEY, &id)?;
        Ok(issued(id, &text))
    }

    async fn revoke(&self, id: ApiKeyId) -> Result<(), AdministrationError> {
        let is_revoked = self.keys.revoke_key(id, self.clock.now()).await?;
        once_nobody_trusts_the_earlier_value().await;
        require(is_revoked, USABLE_KEY, &id)
    }
}

fn issued(id: ApiKeyId, text: &ApiKeyText) -> IssuedApiKey {
    IssuedApiKey { id, text: Secret::new(text.expose().to_owned()) }
}
