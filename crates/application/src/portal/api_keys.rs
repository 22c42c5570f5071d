//! The API keys of a team.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::{MAX_LABEL_CHARS, Permission},
    api_key::ApiKey,
    id::ApiKeyId,
    reauthentication::SensitiveAction,
    secret::Secret,
};
use ports::{
    clock::Clock,
    driving::{KeyService, NewKey, PortalError, SignedInUser},
    key_store::{KeyStore, StoredKey},
    random::RandomSource,
};

use super::AuditTrail;
use crate::{api_keys::ApiKeyText, trusted_keys::once_nobody_trusts_the_earlier_value};

/// The keys that a team has at once, revoked ones included.
const MAX_KEYS: usize = 200;

/// Implements [`KeyService`].
pub struct ApiKeys {
    pub keys: Arc<dyn KeyStore>,
    pub audit: AuditTrail,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl KeyService for ApiKeys {
    async fn keys(&self, user: &SignedInUser) -> Result<Vec<StoredKey>, PortalError> {
        user.require(Permission::View)?;
        Ok(self.keys.keys(user.team).await?)
    }

    async fn make_key(&self, user: &SignedInUser, new: NewKey) -> Result<Secret, PortalError> {
        self.require_to_change(user)?;
        let label = checked_label(&new.label)?;
        if self.keys.keys(user.team).await?.len() >= MAX_KEYS {
            return Err(PortalError::Invalid(format!("a team can have up to {MAX_KEYS} API keys")));
        }
        let text = ApiKeyText::new(new.environment, self.random.random_bytes());
        let key = ApiKey {
            id: ApiKeyId::from_u128(self.random.new_id()),
            team: user.team,
            environment: new.environment,
            expires_at: new.expires_at,
            revoked_at: None,
        };
        let subject = format!("{} {label:?} for {}", key.id, key.environment.as_str());
        self.audit.record(user, "key.make", &subject).await?;
        self.keys.add_key(&key, &text.hash(), label, self.clock.now()).await?;
        Ok(Secret::new(text.expose().to_owned()))
    }

    async fn rotate_key(&self, user: &SignedInUser, id: ApiKeyId) -> Result<Secret, PortalError> {
        let key = self.team_key(user, id).await?;
        let text = ApiKeyText::new(key.environment, self.random.random_bytes());
        self.audit.record(user, "key.rotate", &id.to_string()).await?;
        if !self.keys.rotate_key(id, &text.hash()).await? {
            return Err(PortalError::NotFound("API key"));
        }
        once_nobody_trusts_the_earlier_value().await;
        Ok(Secret::new(text.expose().to_owned()))
    }

    async fn revoke_key(&self, user: &SignedInUser, id: ApiKeyId) -> Result<(), PortalError> {
        self.team_key(user, id).await?;
        self.audit.record(user, "key.revoke", &id.to_string()).await?;
        // A key that was revoked meanwhile is revoked, which is all that was asked for.
        self.keys.revoke_key(id, self.clock.now()).await?;
        once_nobody_trusts_the_earlier_value().await;
        Ok(())
    }
}

impl ApiKeys {
    fn require_to_change(&self, user: &SignedInUser) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        user.require_reauthentication(SensitiveAction::Team, self.clock.now())
    }

    /// Returns a key of the user's team that is not revoked, for a user who may change it.
    async fn team_key(&self, user: &SignedInUser, id: ApiKeyId) -> Result<ApiKey, PortalError> {
        self.require_to_change(user)?;
        let key = self.keys.key(id).await?.filter(|key| key.team == user.team);
        if key.as_ref().is_some_and(|key| key.revoked_at.is_some()) {
            // Whoever has revoked it may be waiting still.
            once_nobody_trusts_the_earlier_value().await;
        }
        key.filter(|key| key.revoked_at.is_none()).ok_or(PortalError::NotFound("API key"))
    }
}

fn checked_label(label: &str) -> Result<&str, PortalError> {
    let label = label.trim();
    let fits = (1..=MAX_LABEL_CHARS).contains(&label.chars().count());
    if fits && !label.contains(char::is_control) {
        return Ok(label);
    }
    Err(PortalError::Invalid(format!("enter a name of 1 to {MAX_LABEL_CHARS} characters")))
}
