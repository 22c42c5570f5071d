//! A team's API keys, as the portal shows and changes them.

use async_trait::async_trait;
use domain::{
    account::{LONGEST_LABEL, Right},
    api_key::ApiKey,
    confirmation::Sensitive,
    id::ApiKeyId,
    secret::Secret,
};
use ports::{
    driving::{KeyService, NewKey, PortalError, Visitor},
    key_store::KeptKey,
};
use uuid::Uuid;

use super::People;
use crate::keys::ApiKeyText;

/// Keys that a team has at once, revoked ones included.
const MOST_KEYS: usize = 200;

#[async_trait]
impl KeyService for People {
    async fn keys(&self, visitor: &Visitor) -> Result<Vec<KeptKey>, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.keys.keys(visitor.team).await?)
    }

    async fn make_key(&self, visitor: &Visitor, order: NewKey) -> Result<Secret, PortalError> {
        visitor.must(Right::Work)?;
        self.confirmed(visitor, Sensitive::Team)?;
        let label = order.label.trim();
        if !(1..=LONGEST_LABEL).contains(&label.chars().count()) || label.contains(char::is_control)
        {
            return Err(PortalError::Invalid(format!(
                "a name has 1 to {LONGEST_LABEL} characters"
            )));
        }
        if self.keys.keys(visitor.team).await?.len() >= MOST_KEYS {
            return Err(PortalError::Invalid(format!("a team has up to {MOST_KEYS} keys")));
        }
        let text = ApiKeyText::new(order.environment, self.core.chance.bits());
        let key = ApiKey {
            id: ApiKeyId::from_uuid(Uuid::from_u128(self.core.chance.id())),
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

    async fn rotate_key(&self, visitor: &Visitor, id: ApiKeyId) -> Result<Secret, PortalError> {
        let key = self.team_key(visitor, id).await?;
        let text = ApiKeyText::new(key.environment, self.core.chance.bits());
        self.note(visitor, "key.rotate", &id.to_string()).await?;
        if !self.keys.rotate_key(id, &text.hash()).await? {
            return Err(PortalError::NotFound("key"));
        }
        Ok(Secret::new(text.expose().to_owned()))
    }

    async fn revoke_key(&self, visitor: &Visitor, id: ApiKeyId) -> Result<(), PortalError> {
        self.team_key(visitor, id).await?;
        self.note(visitor, "key.revoke", &id.to_string()).await?;
        // Who was quicker did the same.
        self.keys.revoke_key(id, self.core.clock.now()).await?;
        Ok(())
    }
}

impl People {
    async fn team_key(&self, visitor: &Visitor, id: ApiKeyId) -> Result<ApiKey, PortalError> {
        visitor.must(Right::Work)?;
        self.confirmed(visitor, Sensitive::Team)?;
        let key = self.keys.key(id).await?.filter(|key| key.team == visitor.team);
        key.filter(|key| key.revoked_at.is_none()).ok_or(PortalError::NotFound("key"))
    }
}
