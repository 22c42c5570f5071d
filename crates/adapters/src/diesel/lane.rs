//! One connection to PostgreSQL that many reads share.

use std::sync::{Arc, Mutex, PoisonError};

use ::diesel::result::{DatabaseErrorKind, Error};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use ports::StoreError;

use super::database::failed;

/// A connection on which reads are pipelined; opened when needed, and again when it broke.
pub(super) struct Lane {
    url: String,
    open: Mutex<Option<Arc<AsyncPgConnection>>>,
    /// Held while opening, so that many who come at once open one.
    opening: tokio::sync::Mutex<()>,
}

impl Lane {
    pub(super) fn new(url: String) -> Self {
        Self { url, open: Mutex::default(), opening: tokio::sync::Mutex::default() }
    }

    fn held(&self) -> Option<Arc<AsyncPgConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn open(&self) -> Result<Arc<AsyncPgConnection>, StoreError> {
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let _one = self.opening.lock().await;
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let fresh = AsyncPgConnection::establish(&self.url).await.map_err(failed("connect"))?;
        let fresh = Arc::new(fresh);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh.clone());
        Ok(fresh)
    }

    /// Whether an error means that the connection is gone; if so it is let go.
    pub(super) fn broke(&self, error: &Error) -> bool {
        let gone = matches!(
            error,
            Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                _
            )
        );
        if gone {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        gone
    }
}
