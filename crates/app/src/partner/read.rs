//! What partners read and end; the driving ports themselves.

use async_trait::async_trait;
use domain::{
    api_key::Environment,
    id::SessionId,
    platform::Platform,
    request::{ListQuery, NewSession},
    session::{Event, Session},
};
use ports::{
    StoreError,
    driving::{
        Caller, CreateError, KeyCheck, Lookups, PlatformFace, SessionError, SessionFace,
        SessionService,
    },
    places::{Country, Region},
};

use super::{Keys, Partners};
use crate::keys::ApiKeyText;

#[async_trait]
impl KeyCheck for Keys {
    async fn caller(&self, key: &str) -> Result<Option<Caller>, StoreError> {
        let Some(key) = ApiKeyText::read(key) else { return Ok(None) };
        let found = self.store.key_by_hash(&key.hash()).await?;
        Ok(found.filter(|key| key.opens(self.clock.now())))
    }
}

#[async_trait]
impl SessionService for Partners {
    async fn create(
        &self,
        caller: &Caller,
        request: NewSession,
    ) -> Result<SessionFace, CreateError> {
        self.create_session(caller, request).await
    }

    async fn read(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<(SessionFace, PlatformFace), SessionError> {
        let found = self.core.sessions.find(caller.id, id).await?;
        let session = found.ok_or(SessionError::NotFound)?;
        let platform = self.core.catalogue.platform(session.order.platform).await?;
        Ok((SessionFace { embed_url: self.core.embed_url(id), session }, platform))
    }

    async fn list(
        &self,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<(Vec<Session>, i64), SessionError> {
        Ok(self.core.sessions.list(caller.id, query).await?)
    }

    async fn terminate(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError> {
        let found = self.core.sessions.find(caller.id, id).await?;
        found.ok_or(SessionError::NotFound)?;
        Ok(self.core.advance(id, None, Event::TerminatedByPartner).await?)
    }
}

#[async_trait]
impl Lookups for Partners {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError> {
        self.core.catalogue.platforms(environment).await
    }

    fn countries(&self) -> Vec<Country> {
        self.places.countries()
    }

    fn regions(&self, country: &str) -> Vec<Region> {
        self.places.regions(country)
    }
}
