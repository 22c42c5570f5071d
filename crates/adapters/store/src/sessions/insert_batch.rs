//! New sessions that wait to be written, written by one statement.

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

/// A session that has just been created, and what its timeline calls that.
pub(crate) struct InsertRequest {
    pub(crate) row: SessionRow,
    pub(crate) event: String,
}

impl BatchRequest for InsertRequest {
    type Answer = Result<(), StoreError>;

    fn waiting(lane: &PipelinedConnection) -> &BatchQueue<Self> {
        &lane.inserts
    }

    async fn answer(
        lane: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Self::Answer>, StoreError> {
        match write(lane, asks).await {
            Ok(()) => Ok(asks.iter().map(|_| Ok(())).collect()),
            // One that cannot be written does not take the others along.
            Err(_) if asks.len() > 1 => {
                let mut answers = Vec::with_capacity(asks.len());
                for ask in asks {
                    answers.push(write(lane, std::slice::from_ref(ask)).await);
                }
                Ok(answers)
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes all or none. Made once more on a new connection where the old one broke: what was
/// written after all is refused then, since an identifier is inserted once.
async fn write(lane: &PipelinedConnection, asks: &[InsertRequest]) -> Result<(), StoreError> {
    let written =
        with_pipelined_connection!(lane, |conn| InsertBatch::of(asks).execute(conn).await);
    written.map(drop).map_err(failed("insert a session"))
}

/// Each column of the new sessions as an array.
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
