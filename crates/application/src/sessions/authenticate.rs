//! The gate: whose a request is, and whether it is within its limits.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{api_key::ApiKey, id::SessionId, rate::RateWindow};
use ports::{
    StoreError,
    driving::{
        AccessDenied, AuthOutcome, Authenticator, Caller, PolledSession, RequestCredentials,
        RequestPurpose,
    },
    key_store::KeyStore,
    rate_limiter::{Charge, RateLimiter, Subject},
    session_store::SessionStore,
};
use uuid::Uuid;

use crate::{
    advance::Core,
    api_keys::{ApiKeyText, KeyUses},
    settings::Limits,
};

/// Admits partners.
pub struct KeyAuthenticator {
    pub core: Arc<Core>,
    pub keys: Arc<dyn KeyStore>,
    pub sessions: Arc<dyn SessionStore>,
    pub limiter: Arc<dyn RateLimiter>,
    pub limits: Limits,
    pub uses: Arc<KeyUses>,
}

#[async_trait]
impl Authenticator for KeyAuthenticator {
    async fn authenticate(&self, knock: RequestCredentials) -> Result<AuthOutcome, StoreError> {
        let found = match read(&knock) {
            Some(key) => self.keys.key_by_hash(&key.hash()).await?,
            None => None,
        };
        let (key, catalogue) = found.unzip();
        Ok(AuthOutcome { catalogue, ..self.judge(&knock, key).await })
    }

    async fn poll(
        &self,
        knock: RequestCredentials,
        id: Option<SessionId>,
    ) -> Result<(AuthOutcome, Option<PolledSession>), StoreError> {
        let id = id.unwrap_or(SessionId::from_uuid(Uuid::nil()));
        let found = match read(&knock) {
            Some(key) => self.sessions.poll(&key.hash(), id).await?,
            None => None,
        };
        let (key, session) = found.map_or((None, None), |(key, session)| (Some(key), session));
        let admission = self.judge(&knock, key).await;
        let face = session.filter(|_| admission.verdict.is_ok()).map(|(session, platform)| {
            PolledSession { face: self.core.with_urls(session), platform }
        });
        Ok((admission, face))
    }
}

fn read(knock: &RequestCredentials) -> Option<ApiKeyText> {
    ApiKeyText::read(knock.key.as_ref()?.expose())
}

impl KeyAuthenticator {
    async fn judge(&self, knock: &RequestCredentials, key: Option<ApiKey>) -> AuthOutcome {
        let now = self.core.clock.now();
        let shown = key.as_ref().map(|key| key.id);
        let caller = key.filter(|key| key.opens(now));
        if let Some(key) = &caller {
            self.uses.note(key.id, now);
        }
        let windows = match self.charges(knock, caller.as_ref()) {
            charges if charges.is_empty() => vec![],
            charges => self.limiter.charge(&charges, now).await,
        };
        let over = windows.iter().filter(|window| !window.admits());
        let verdict = match over.map(|window| window.retry_after(now)).max() {
            Some(retry_after) => Err(AccessDenied::TooMany { retry_after }),
            None => caller.ok_or(AccessDenied::Unauthorized),
        };
        // The limit on creation is told by `Retry-After` alone.
        let told = |window: &RateWindow| Some(window.limit) == self.limits.requests;
        let window = windows.into_iter().next().filter(told);
        AuthOutcome { window, verdict, key: shown, catalogue: None }
    }

    fn charges(&self, knock: &RequestCredentials, caller: Option<&Caller>) -> Vec<Charge> {
        let subject = caller.map_or(Subject::Address(knock.address), |key| Subject::Key(key.id));
        let requests = self.limits.requests.map(|limit| Charge { subject, limit });
        let creating = caller.filter(|_| knock.purpose == RequestPurpose::Creation);
        let creations = creating.zip(self.limits.creations).map(|(key, limit)| {
            let subject = Subject::Creation(key.id);
            Charge { subject, limit }
        });
        let of_team = creating.zip(self.limits.team_creations).map(|(key, limit)| {
            let subject = Subject::TeamCreation(key.team);
            Charge { subject, limit }
        });
        requests.into_iter().chain(creations).chain(of_team).collect()
    }
}
