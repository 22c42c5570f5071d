//! Authenticates requests of the partner API by their key, and applies the rate limits.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    api_key::ApiKey,
    id::SessionId,
    rate::{RateLimit, RateWindow},
};
use ports::{
    StoreError,
    clock::Clock,
    driving::{
        AccessDenied, AuthOutcome, Authenticator, Caller, PolledSession, RequestCredentials,
        RequestPurpose,
    },
    key_store::KeyVerification,
    rate_limiter::{Charge, RateLimiter, Subject},
    session_store::SessionQueries,
};
use uuid::Uuid;

use crate::{
    api_keys::{ApiKeyText, KeyUses},
    settings::Limits,
    urls::Urls,
};

/// Finds the caller of a request by its API key, and charges the request to that caller.
pub struct KeyAuthenticator {
    pub clock: Arc<dyn Clock>,
    pub urls: Arc<Urls>,
    pub keys: Arc<dyn KeyVerification>,
    pub sessions: Arc<dyn SessionQueries>,
    pub limiter: Arc<dyn RateLimiter>,
    pub limits: Limits,
    pub uses: Arc<KeyUses>,
}

#[async_trait]
impl Authenticator for KeyAuthenticator {
    async fn authenticate(
        &self,
        credentials: RequestCredentials,
    ) -> Result<AuthOutcome, StoreError> {
        let found = match key_of(&credentials) {
            Some(key) => self.keys.key_by_hash(&key.hash()).await?,
            None => None,
        };
        let (key, catalogue) = found.unzip();
        Ok(AuthOutcome { catalogue, ..self.decide(&credentials, key).await })
    }

    async fn poll(
        &self,
        credentials: RequestCredentials,
        id: Option<SessionId>,
    ) -> Result<(AuthOutcome, Option<PolledSession>), StoreError> {
        let id = id.unwrap_or(SessionId::from_uuid(Uuid::nil()));
        let found = match key_of(&credentials) {
            Some(key) => self.sessions.poll(&key.hash(), id).await?,
            None => None,
        };
        let (key, session) = found.map_or((None, None), |(key, session)| (Some(key), session));
        let outcome = self.decide(&credentials, key).await;
        let session = session.filter(|_| outcome.result.is_ok()).map(|(session, platform)| {
            PolledSession { view: self.urls.with_urls(session), platform }
        });
        Ok((outcome, session))
    }
}

fn key_of(credentials: &RequestCredentials) -> Option<ApiKeyText> {
    ApiKeyText::read(credentials.key.as_ref()?.expose())
}

impl KeyAuthenticator {
    /// Charges the request to its caller, or to its address if the key is not valid.
    async fn decide(&self, credentials: &RequestCredentials, key: Option<ApiKey>) -> AuthOutcome {
        let now = self.clock.now();
        let key_id = key.as_ref().map(|key| key.id);
        let caller = key.filter(|key| key.opens(now));
        if let Some(key) = &caller {
            self.uses.note(key.id, now);
        }
        let windows = match self.charges(credentials, caller.as_ref()) {
            charges if charges.is_empty() => vec![],
            charges => self.limiter.charge(&charges, now).await,
        };
        let exceeded = windows.iter().filter(|window| !window.admits());
        let verdict = match exceeded.map(|window| window.retry_after(now)).max() {
            Some(retry_after) => Err(AccessDenied::TooMany { retry_after }),
            None => caller.ok_or(AccessDenied::Unauthorized),
        };
        let window = match self.limits.requests {
            // A limit on creation shows in `Retry-After` only, not in the headers of the window.
            Some(limit) => windows.into_iter().next().filter(|window| window.limit == limit),
            // Without a limit, clients see the window that would hold, unused.
            None => Some(RateWindow {
                limit: RateLimit::STANDARD,
                used: 0,
                resets_at: now + RateLimit::STANDARD.span(),
            }),
        };
        AuthOutcome { window, result: verdict, key: key_id, catalogue: None }
    }

    fn charges(&self, credentials: &RequestCredentials, caller: Option<&Caller>) -> Vec<Charge> {
        let subject =
            caller.map_or(Subject::Address(credentials.address), |key| Subject::Key(key.id));
        let requests = self.limits.requests.map(|limit| Charge { subject, limit });
        let creating = caller.filter(|_| credentials.purpose == RequestPurpose::Creation);
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
