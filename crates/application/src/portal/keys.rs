//! A team's API keys, as the portal shows and changes them.

use async_trait::async_trait;
use domain::{
    account::{MAX_LABEL_CHARS, Permission},
    api_key::ApiKey,
    id::ApiKeyId,
    reauthentication::SensitiveAction,
    secret::Secret,
};
use ports::{
    driving::{KeyService, NewKey, PortalError, SignedInUser},
    key_store::StoredKey,
};
use uuid::Uuid;

use super::People;
use crate::api_keys::ApiKeyText;

/// Keys that a team has at once, revoked ones included.
const MAX_KEYS: usize = 200;

#[async_trait]
impl KeyService for People {
    async fn keys(&self, visitor: &SignedInUser) -> Result<Vec<StoredKey>, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.keys.keys(visitor.team).await?)
    }

    async fn make_key(&self, visitor: &SignedInUser, order: NewKey) -> Result<Secret, PortalError> {
        visitor.require(Permission::Work)?;
        self.confirmed(visitor, SensitiveAction::Team)?;
        let label = order.label.trim();
        if !(1..=MAX_LABEL_CHARS).contains(&label.chars().count())
            || label.contains(char::is_control)
        {
            return Err(PortalError::Invalid(format!(
                "a name has 1 to {MAX_LABEL_CHARS} characters"
            )));
        }
        if self.keys.keys(visitor.team).await?.len() >= MAX_KEYS {
            return Err(PortalError::Invalid(format!("a team has up to {MAX_KEYS} keys")));
        }
        let text = ApiKeyText::new(order.environment, self.core.random.random_bytes());
        let key = ApiKey {
            id: ApiKeyId::from_uuid(Uuid::from_u128(self.core.random.new_id())),
            team: visitor.team,
            environment: order.environment,
            expires_at: order.expires_at,
            revoked_at: None,
        };
        let subject = format!("{} {label:?} for {}", key.id, key.environment.as_str());
        self.note(visitor, "key.make", &subject).await?;
        self.keys.add_key(&key, &text.hash(), label, self.core.clock.now()).await?;
        Ok(Secret::new(text.expose().to_owned()))
    }

    async fn rotate_key(
        &self,
        visitor: &SignedInUser,
        id: ApiKeyId,
    ) -> Result<Secret, PortalError> {
        let key = self.team_key(visitor, id).await?;
        let text = ApiKeyText::new(key.environment, self.core.random.random_bytes());
        self.note(visitor, "key.rotate", &id.to_string()).await?;
        if !self.keys.rotate_key(id, &text.hash()).await? {
            return Err(PortalError::NotFound("key"));
        }
        Ok(Secret::new(text.expose().to_owned()))
    }

    async fn revoke_key(&self, visitor: &SignedInUser, id: ApiKeyId) -> Result<(), PortalError> {
        self.team_key(visitor, id).await?;
        self.note(visitor, "key.revoke", &id.to_string()).await?;
        // Who was quicker did the same.
        self.keys.revoke_key(id, self.core.clock.now()).await?;
        Ok(())
    }
}

impl People {
    async fn team_key(&self, visitor: &SignedInUser, id: ApiKeyId) -> Result<ApiKey, PortalError> {
        visitor.require(Permission::Work)?;
        self.confirmed(visitor, SensitiveAction::Team)?;
        let key = self.keys.key(id).await?.filter(|key| key.team == visitor.team);
        key.filter(|key| key.revoked_at.is_none()).ok_or(PortalError::NotFound("key"))
    }
}
