//! Reads the rows of concurrently requested sessions in one statement.

use std::collections::HashMap;

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use ports::StoreError;

use crate::engine::batcher::{BatchQueue, BatchRequest};
use crate::engine::column::Id;
use crate::engine::database::{failed, with_pipelined_connection};
use crate::engine::pipelined::PipelinedConnection;
use crate::engine::schema::sessions;
use crate::sessions::row::SessionRow;

/// A request for a session of any owner.
pub(crate) struct FindRequest(pub(crate) Id);

impl BatchRequest for FindRequest {
    type Answer = Option<SessionRow>;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self> {
        &connection.finds
    }

    /// Requests for the same session share its row.
    async fn answer(
        connection: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Self::Answer>, StoreError> {
        let mut ids: Vec<_> = asks.iter().map(|FindRequest(id)| *id).collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids.dedup();
        let found: QueryResult<Vec<SessionRow>> = with_pipelined_connection!(connection, |conn| {
            sessions::table
                .filter(sessions::id.eq_any(&ids))
                .select(SessionRow::as_select())
                .load(conn)
                .await
        });
        let found = found.map_err(failed("find a session"))?;
        let found: HashMap<_, _> = found.into_iter().map(|row| (row.id, row)).collect();
        Ok(asks.iter().map(|FindRequest(id)| found.get(id).cloned()).collect())
    }
}
