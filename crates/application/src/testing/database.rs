//! A database that fails as the test wants, in front of the in-memory store.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    frame_ancestors::FrameAncestor,
    id::{BrowserId, SessionId},
    session::{Change, Session},
};
use memory_store::MemoryStore;
use ports::{
    StoreError,
    session_store::{
        BrowserLeases, CommitError, DueReason, IdempotencyKey, InsertOutcome, SessionStore,
    },
};

/// What statements about sessions meet.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseCondition {
    #[default]
    Works,
    Fails,
    /// Answers nothing, as beyond a network that loses all packets.
    IsSilent,
    /// Commits, and loses the connection before it says so.
    LosesCommitResults,
}

/// The sessions and leases of the store, while the database works.
pub(crate) struct FakeDatabase {
    store: Arc<MemoryStore>,
    condition: Mutex<DatabaseCondition>,
}

impl FakeDatabase {
    pub(crate) fn new(store: Arc<MemoryStore>) -> Self {
        Self { store, condition: Mutex::default() }
    }

    pub(crate) fn set(&self, condition: DatabaseCondition) {
        *self.condition.lock().unwrap_or_else(PoisonError::into_inner) = condition;
    }

    fn condition(&self) -> DatabaseCondition {
        *self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn meet(&self, action: &'static str) -> Result<(), StoreError> {
        match self.condition() {
            DatabaseCondition::Works | DatabaseCondition::LosesCommitResults => Ok(()),
            DatabaseCondition::Fails => Err(StoreError::new(action, "broken")),
            DatabaseCondition::IsSilent => std::future::pending().await,
        }
    }
}

#[async_trait]
impl SessionStore for FakeDatabase {
    async fn insert(
        &self,
        opening: &Change,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        self.meet("insert a session").await?;
        self.store.insert(opening, idempotency).await
    }

    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.meet("find a session").await?;
        self.store.find_unscoped(id).await
    }

    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError> {
        self.meet("find the frame ancestors of a session").await?;
        self.store.frame_ancestors_of(id).await
    }

    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError> {
        self.meet("commit a change").await?;
        self.store.commit(change, alive_until).await?;
        if self.condition() == DatabaseCondition::LosesCommitResults {
            return Err(StoreError::new("commit a change", "the connection was lost").into());
        }
        Ok(())
    }
}

#[async_trait]
impl BrowserLeases for FakeDatabase {
    async fn renew(
        &self,
        id: SessionId,
        browser: BrowserId,
        alive_until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.meet("renew a lease").await?;
        self.store.renew(id, browser, alive_until).await
    }

    async fn find_due(
        &self,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<(Session, DueReason)>, StoreError> {
        self.meet("find due sessions").await?;
        self.store.find_due(now, limit).await
    }
}
