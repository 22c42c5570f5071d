//! The partner's side of the service.

use async_trait::async_trait;
use domain::{
    api_key::{ApiKey, Environment},
    id::SessionId,
    platform::Platform,
    request::{Invalid, ListQuery, NewSession},
    session::Session,
};

use crate::{
    StoreError,
    places::{Country, Region},
};

/// Who makes a request: a key that was checked.
pub type Caller = ApiKey;

/// Finds the caller behind a key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait KeyCheck: Send + Sync {
    /// `None` for a key that is unknown, revoked or expired.
    async fn caller(&self, key: &str) -> Result<Option<Caller>, StoreError>;
}

/// Sessions, as partners use them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionService: Send + Sync {
    async fn create(
        &self,
        caller: &Caller,
        request: NewSession,
    ) -> Result<SessionFace, CreateError>;

    async fn read(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<(SessionFace, PlatformFace), SessionError>;

    /// A part of the caller's sessions, and how many there are in all.
    async fn list(
        &self,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<(Vec<Session>, i64), SessionError>;

    /// Ends a session early. A session that has ended already is left alone.
    async fn terminate(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError>;
}

/// A session with the addresses that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFace {
    pub session: Session,
    pub embed_url: String,
}

/// The platform of a session; absent only where the catalogue lost it.
pub type PlatformFace = Option<Platform>;

/// What a partner may choose from.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Lookups: Send + Sync {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError>;
    fn countries(&self) -> Vec<Country>;
    fn regions(&self, country: &str) -> Vec<Region>;
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("Session not found")]
    NotFound,
    #[error("the session is saved by too many at once")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}
