//! Reads an API key's record and one of its sessions in one query.

use std::collections::HashMap;

use ::diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Binary},
};
use diesel_async::RunQueryDsl;
use domain::{
    api_key::{ApiKey, KeyHash},
    id::{PlatformId, SessionId},
    platform::PlatformSummary,
};
use ports::{StoreError, catalogue::CatalogueRevision, session_store::PolledRecord};

use crate::engine::batcher::{BatchQueue, BatchRequest};
use crate::engine::column::{Id, SqlId};
use crate::engine::database::{Store, failed, with_conn, with_pipelined_connection};
use crate::engine::pipelined::PipelinedConnection;
use crate::engine::schema::{api_keys, catalogue, platforms, sessions};
use crate::sessions::row::SessionRow;
use crate::teams::keys::KeyRow;

#[derive(Queryable, Selectable)]
#[diesel(table_name = platforms)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct PolledPlatformRow {
    id: i32,
    name: String,
    display_name: String,
    icon: String,
    login_url: String,
}

impl PolledPlatformRow {
    pub(crate) fn read(self) -> PlatformSummary {
        PlatformSummary {
            id: PlatformId(self.id),
            name: self.name,
            display_name: self.display_name,
            icon: self.icon,
            login_url: self.login_url,
        }
    }
}

/// A key's record, the stored session, and the session's platform.
pub(crate) type PollRow = (KeyRow, Option<SessionRow>, Option<PolledPlatformRow>);
type Columns = (
    AsSelect<KeyRow, Pg>,
    AsSelect<Option<SessionRow>, Pg>,
    AsSelect<Option<PolledPlatformRow>, Pg>,
);

/// A key's record with the catalogue's revision; without a revision a migration is missing.
type KeyRowFound = (KeyRow, Option<i64>);

macro_rules! key_columns {
    () => {
        (KeyRow::as_select(), catalogue::table.find(1).select(catalogue::revision).single_value())
    };
}

fn read_key((key, revision): KeyRowFound) -> Result<(ApiKey, CatalogueRevision), StoreError> {
    let missing = || StoreError::new("find a key", "the catalogue has no revision");
    Ok((key.read()?, CatalogueRevision(revision.ok_or_else(missing)?)))
}

/// A request for a key's record and one of its sessions.
pub(crate) struct PollRequest {
    key: KeyHash,
    session: SessionId,
}

/// A request for a key's record.
pub(crate) struct KeyRequest(KeyHash);

/// Executes many polls in one statement. The overhead of a statement, which exceeds the cost of a
/// poll's index look-ups, is shared.
struct PollBatch {
    columns: Columns,
    hashes: Vec<Vec<u8>>,
    ids: Vec<Id>,
}

impl PollBatch {
    fn of(asks: &[PollRequest]) -> Self {
        Self {
            columns: (
                KeyRow::as_select(),
                Option::<SessionRow>::as_select(),
                Option::<PolledPlatformRow>::as_select(),
            ),
            hashes: asks.iter().map(|ask| ask.key.0.to_vec()).collect(),
            ids: asks.iter().map(|ask| Id::from(ask.session)).collect(),
        }
    }
}

impl QueryId for PollBatch {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for PollBatch {
    type SqlType = (BigInt, SqlTypeOf<Columns>);
}

impl QueryFragment<Pg> for PollBatch {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT asked.number, ");
        self.columns.walk_ast(out.reborrow())?;
        out.push_sql(" FROM unnest(");
        out.push_bind_param::<Array<Binary>, _>(&self.hashes)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlId>, _>(&self.ids)?;
        out.push_sql(
            ") WITH ORDINALITY AS asked (hash, id, number) \
             JOIN api_keys ON api_keys.hash = asked.hash \
             LEFT JOIN sessions ON sessions.id = asked.id AND sessions.owner = api_keys.id \
             LEFT JOIN platforms ON platforms.id = sessions.platform",
        );
        Ok(())
    }
}

impl BatchRequest for PollRequest {
    type Answer = Option<PollRow>;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self> {
        &connection.polls
    }

    async fn answer(
        connection: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Self::Answer>, StoreError> {
        let found: QueryResult<Vec<(i64, PollRow)>> =
            with_pipelined_connection!(connection, |conn| PollBatch::of(asks).load(conn).await);
        let mut answers: Vec<_> = asks.iter().map(|_| None).collect();
        for (number, found) in found.map_err(failed("poll a session"))? {
            let place = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
            if let Some(answer) = answers.get_mut(place) {
                *answer = Some(found);
            }
        }
        Ok(answers)
    }
}

impl BatchRequest for KeyRequest {
    type Answer = Option<(ApiKey, CatalogueRevision)>;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self> {
        &connection.keys
    }

    /// Requests with the same key share its row.
    async fn answer(
        connection: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Self::Answer>, StoreError> {
        let mut hashes: Vec<&[u8]> =
            asks.iter().map(|KeyRequest(hash)| hash.0.as_slice()).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let found: QueryResult<Vec<KeyRowFound>> = with_pipelined_connection!(connection, |conn| {
            let mine = api_keys::hash.eq_any(&hashes);
            api_keys::table.filter(mine).select(key_columns!()).load(conn).await
        });
        let found: Result<HashMap<_, _>, _> = found
            .map_err(failed("find a key"))?
            .into_iter()
            .map(|row| Ok((row.0.hash.clone(), read_key(row)?)))
            .collect();
        let found = found?;
        Ok(asks.iter().map(|KeyRequest(hash)| found.get(hash.0.as_slice()).cloned()).collect())
    }
}

impl Store {
    pub(crate) async fn poll_session(
        &self,
        key: &KeyHash,
        id: SessionId,
    ) -> Result<Option<PolledRecord>, StoreError> {
        if let Some(connection) = &self.pipelined {
            let found = connection.request(PollRequest { key: key.clone(), session: id }).await?;
            return self.read_polled(found).await;
        }
        let id = Id::from(id);
        let found: QueryResult<Option<PollRow>> = with_conn!(self, |conn| {
            let its = sessions::owner.eq(api_keys::id).and(sessions::id.eq(id));
            api_keys::table
                .left_join(sessions::table.on(its))
                .left_join(
                    platforms::table.on(platforms::id.nullable().eq(sessions::platform.nullable())),
                )
                .filter(api_keys::hash.eq(key.0.as_slice()))
                .select((
                    KeyRow::as_select(),
                    Option::<SessionRow>::as_select(),
                    Option::<PolledPlatformRow>::as_select(),
                ))
                .first(conn)
                .await
                .optional()
        });
        self.read_polled(found.map_err(failed("poll a session"))?).await
    }

    async fn read_polled(
        &self,
        found: Option<PollRow>,
    ) -> Result<Option<PolledRecord>, StoreError> {
        let Some((key, session, card)) = found else { return Ok(None) };
        let session = match session {
            Some(row) => Some(self.read_session_of(key.team, row).await?),
            None => None,
        };
        Ok(Some((key.read()?, session.map(|session| (session, card.map(PolledPlatformRow::read))))))
    }

    pub(crate) async fn find_key(
        &self,
        hash: &KeyHash,
    ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError> {
        if let Some(connection) = &self.pipelined {
            return connection.request(KeyRequest(hash.clone())).await;
        }
        let found: QueryResult<Option<KeyRowFound>> = with_conn!(self, |conn| {
            api_keys::table
                .filter(api_keys::hash.eq(hash.0.as_slice()))
                .select(key_columns!())
                .first(conn)
                .await
                .optional()
        });
        found.map_err(failed("find a key"))?.map(read_key).transpose()
    }
}
