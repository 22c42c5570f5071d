//! Measures how long connections are waited for, and how long statements take.

use std::time::Instant;

use ::diesel::result::{DatabaseErrorKind, Error};
use ports::StoreError;

/// Tells failures of the database from answers that a query reads as an error.
pub(crate) trait StatementFailure {
    fn is_failure(&self) -> bool;
}

impl StatementFailure for Error {
    fn is_failure(&self) -> bool {
        !matches!(
            self,
            Self::NotFound
                | Self::RollbackTransaction
                | Self::DatabaseError(
                    DatabaseErrorKind::UniqueViolation | DatabaseErrorKind::ForeignKeyViolation,
                    _
                )
        )
    }
}

impl StatementFailure for StoreError {
    fn is_failure(&self) -> bool {
        true
    }
}

/// Records how long a statement, or a transaction, took that is over or was given up.
pub(crate) fn measured<T, E: StatementFailure>(
    began: Instant,
    done: Result<Result<T, E>, E>,
) -> Result<T, E> {
    let outcome = match &done {
        Ok(Err(error)) if error.is_failure() => "failed",
        Ok(_) => "ok",
        Err(_) => "timed_out",
    };
    metrics::histogram!("avouch_database_statement_seconds", "outcome" => outcome)
        .record(began.elapsed());
    done.unwrap_or_else(Err)
}

/// Records how long a connection of the pool was waited for, including the time to open it.
pub(crate) fn measure_wait(began: Instant, is_connected: bool) {
    let outcome = if is_connected { "connected" } else { "failed" };
    metrics::histogram!("avouch_database_connection_wait_seconds", "outcome" => outcome)
        .record(began.elapsed());
}
