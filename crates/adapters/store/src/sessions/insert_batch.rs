//! Inserts concurrently created sessions in one statement.

use ::diesel::{
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Array, Integer, Nullable, Text},
};
use diesel_async::RunQueryDsl;
use ports::StoreError;

use crate::engine::batcher::{BatchQueue, BatchRequest};
use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::database::{failed, with_pipelined_connection};
use crate::engine::pipelined::PipelinedConnection;
use crate::sessions::row::SessionRow;

/// A newly created session and its first timeline event.
pub(crate) struct InsertRequest {
    pub(crate) row: SessionRow,
    pub(crate) event: String,
}

impl BatchRequest for InsertRequest {
    type Answer = Result<(), StoreError>;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self> {
        &connection.inserts
    }

    async fn answer(
        connection: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Self::Answer>, StoreError> {
        match write(connection, asks).await {
            Ok(()) => Ok(asks.iter().map(|_| Ok(())).collect()),
            // If one session cannot be inserted, the others still are.
            Err(_) if asks.len() > 1 => {
                let mut answers = Vec::with_capacity(asks.len());
                for ask in asks {
                    answers.push(write(connection, std::slice::from_ref(ask)).await);
                }
                Ok(answers)
            }
            Err(error) => Err(error),
        }
    }
}

/// Inserts all or none. After a broken connection the statement is repeated once on a new one; if
/// it had been executed, the repetition fails, since an identifier can be inserted only once.
async fn write(connection: &PipelinedConnection, asks: &[InsertRequest]) -> Result<(), StoreError> {
    let written =
        with_pipelined_connection!(connection, |conn| InsertBatch::of(asks).execute(conn).await);
    written.map(drop).map_err(failed("insert a session"))
}

/// The columns of the new sessions, each as an array.
struct InsertBatch<'a> {
    ids: Vec<Id>,
    owners: Vec<Id>,
    terms: Vec<&'a str>,
    states: Vec<&'a str>,
    statuses: Vec<&'a str>,
    progress: Vec<i32>,
    versions: Vec<i32>,
    created: Vec<Timestamp>,
    expires: Vec<Timestamp>,
    platforms: Vec<i32>,
    events: Vec<&'a str>,
    references: Vec<Option<&'a str>>,
}

impl<'a> InsertBatch<'a> {
    fn of(asks: &'a [InsertRequest]) -> Self {
        fn all<'a, T>(asks: &'a [InsertRequest], of: impl Fn(&'a SessionRow) -> T) -> Vec<T> {
            asks.iter().map(|ask| of(&ask.row)).collect()
        }
        Self {
            ids: all(asks, |row| row.id),
            owners: all(asks, |row| row.owner),
            terms: all(asks, |row| row.terms.as_str()),
            states: all(asks, |row| row.state.as_str()),
            statuses: all(asks, |row| row.status.as_str()),
            progress: all(asks, |row| row.progress),
            versions: all(asks, |row| row.version),
            created: all(asks, |row| row.created_at),
            expires: all(asks, |row| row.expires_at),
            platforms: all(asks, |row| row.platform),
            references: all(asks, |row| row.reference.as_deref()),
            events: asks.iter().map(|ask| ask.event.as_str()).collect(),
        }
    }
}

impl QueryId for InsertBatch<'_> {
    type QueryId = InsertBatch<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for InsertBatch<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH asked AS (SELECT * FROM unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlId>, _>(&self.owners)?;
        for texts in [&self.terms, &self.states, &self.statuses, &self.events] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Text>, _>(texts)?;
        }
        for numbers in [&self.progress, &self.versions, &self.platforms] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Integer>, _>(numbers)?;
        }
        for moments in [&self.created, &self.expires] {
            out.push_sql(", ");
            out.push_bind_param::<Array<SqlTimestamp>, _>(moments)?;
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.references)?;
        out.push_sql(
            ") AS t (id, owner, terms, state, status, event, progress, version, platform, \
                 created_at, expires_at, reference)), \
             fresh AS (INSERT INTO sessions (id, owner, terms, state, status, progress, version, \
                 platform, created_at, expires_at, reference) \
                 SELECT id, owner, terms, state, status, progress, version, platform, created_at, \
                 expires_at, reference FROM asked) \
             INSERT INTO session_events (session, version, at, event, status) \
             SELECT id, version, created_at, event, status FROM asked",
        );
        Ok(())
    }
}
