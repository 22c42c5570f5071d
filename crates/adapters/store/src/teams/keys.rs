//! Teams and API keys; only the hash of a key is stored.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    api_key::{ApiKey, KeyHash},
    frame_ancestors::{FrameAncestor, InvalidFrameAncestor},
    id::{ApiKeyId, TeamId},
};
use ports::{
    StoreError,
    catalogue::CatalogueRevision,
    key_store::{KeyStore, KeyVerification, StoredKey, TeamStore},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, teams};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = api_keys)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct KeyRow {
    id: Id,
    pub(crate) team: Id,
    environment: String,
    pub(crate) hash: Vec<u8>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl KeyRow {
    pub(crate) fn read(self) -> Result<ApiKey, StoreError> {
        Ok(ApiKey {
            id: self.id.to(),
            team: self.team.to(),
            environment: self.environment.parse().map_err(failed("read a key back"))?,
            expires_at: self.expires_at.map(|moment| moment.0),
            revoked_at: self.revoked_at.map(|moment| moment.0),
        })
    }
}

/// The frame ancestors of a team, as they are stored.
pub(crate) fn read_ancestors(list: &str) -> Result<Vec<FrameAncestor>, StoreError> {
    let read = list.split_whitespace().map(str::parse).collect::<Result<_, InvalidFrameAncestor>>();
    read.map_err(failed("read a team's pages back"))
}

#[async_trait]
impl TeamStore for Store {
    async fn add_team(&self, id: TeamId, name: &str, now: DateTime<Utc>) -> Result<(), StoreError> {
        let row = (
            teams::id.eq(Id::from(id)),
            teams::name.eq(name),
            teams::created_at.eq(Timestamp(now)),
        );
        let written = with_conn!(self, |conn| {
            ::diesel::insert_into(teams::table).values(row).execute(conn).await
        });
        written.map(drop).map_err(failed("add a team"))
    }

    async fn has_team(&self, id: TeamId) -> Result<bool, StoreError> {
        let team = teams::table.filter(teams::id.eq(Id::from(id)));
        let count: QueryResult<i64> = with_conn!(self, |conn| team.count().get_result(conn).await);
        count.map(|count| count == 1).map_err(failed("look for a team"))
    }

    async fn set_frame_ancestors(
        &self,
        id: TeamId,
        ancestors: &[FrameAncestor],
    ) -> Result<bool, StoreError> {
        let list: Vec<_> = ancestors.iter().map(ToString::to_string).collect();
        let written = with_conn!(self, |conn| {
            ::diesel::update(teams::table.filter(teams::id.eq(Id::from(id))))
                .set(teams::frame_ancestors.eq(list.join(" ")))
                .execute(conn)
                .await
        });
        written.map(|rows| rows == 1).map_err(failed("set a team's pages"))
    }

    async fn frame_ancestors(&self, id: TeamId) -> Result<Vec<FrameAncestor>, StoreError> {
        let team = teams::table.filter(teams::id.eq(Id::from(id)));
        let list: QueryResult<Option<String>> = with_conn!(self, |conn| {
            team.select(teams::frame_ancestors).first(conn).await.optional()
        });
        read_ancestors(&list.map_err(failed("find a team's pages"))?.unwrap_or_default())
    }

    async fn set_other_regions(&self, id: TeamId, allowed: bool) -> Result<bool, StoreError> {
        let written = with_conn!(self, |conn| {
            ::diesel::update(teams::table.filter(teams::id.eq(Id::from(id))))
                .set(teams::other_regions.eq(allowed))
                .execute(conn)
                .await
        });
        written.map(|rows| rows == 1).map_err(failed("set the regions of a team"))
    }

    async fn other_regions(&self, id: TeamId) -> Result<bool, StoreError> {
        let team = teams::table.filter(teams::id.eq(Id::from(id)));
        let allowed: QueryResult<Option<bool>> = with_conn!(self, |conn| {
            team.select(teams::other_regions).first(conn).await.optional()
        });
        allowed.map(Option::unwrap_or_default).map_err(failed("read the regions of a team"))
    }
}

#[async_trait]
impl KeyStore for Store {
    async fn add_key(
        &self,
        key: &ApiKey,
        hash: &KeyHash,
        label: &str,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let row = KeyRow {
            id: Id::from(key.id),
            team: Id::from(key.team),
            environment: key.environment.as_str().to_owned(),
            hash: hash.0.to_vec(),
            created_at: Timestamp(now),
            expires_at: key.expires_at.map(Timestamp),
            revoked_at: key.revoked_at.map(Timestamp),
        };
        let written = with_conn!(self, |conn| {
            let row = (&row, api_keys::label.eq(label));
            ::diesel::insert_into(api_keys::table).values(row).execute(conn).await
        });
        written.map(drop).map_err(failed("add a key"))
    }

    async fn keys(&self, team: TeamId) -> Result<Vec<StoredKey>, StoreError> {
        let rows: QueryResult<Vec<(KeyRow, String, Option<Timestamp>)>> =
            with_conn!(self, |conn| {
                api_keys::table
                    .filter(api_keys::team.eq(Id::from(team)))
                    .order((api_keys::created_at.desc(), api_keys::id.desc()))
                    .select((KeyRow::as_select(), api_keys::label, api_keys::used_at))
                    .load(conn)
                    .await
            });
        let rows = rows.map_err(failed("read a team's keys"))?.into_iter();
        let read = rows.map(|(row, label, used_at)| {
            let (created_at, used_at) = (row.created_at.0, used_at.map(|moment| moment.0));
            Ok(StoredKey { key: row.read()?, label, created_at, used_at })
        });
        read.collect()
    }

    async fn key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, StoreError> {
        let found = with_conn!(self, |conn| {
            api_keys::table
                .filter(api_keys::id.eq(Id::from(id)))
                .select(KeyRow::as_select())
                .first(conn)
                .await
                .optional()
        });
        found.map_err(failed("find a key"))?.map(KeyRow::read).transpose()
    }

    async fn rotate_key(&self, id: ApiKeyId, hash: &KeyHash) -> Result<bool, StoreError> {
        let written = with_conn!(self, |conn| {
            let live = api_keys::table
                .filter(api_keys::id.eq(Id::from(id)))
                .filter(api_keys::revoked_at.is_null());
            ::diesel::update(live).set(api_keys::hash.eq(hash.0.as_slice())).execute(conn).await
        });
        written.map(|rows| rows == 1).map_err(failed("rotate a key"))
    }

    async fn revoke_key(&self, id: ApiKeyId, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let written = with_conn!(self, |conn| {
            let live = api_keys::table
                .filter(api_keys::id.eq(Id::from(id)))
                .filter(api_keys::revoked_at.is_null());
            ::diesel::update(live)
                .set(api_keys::revoked_at.eq(Some(Timestamp(now))))
                .execute(conn)
                .await
        });
        written.map(|rows| rows == 1).map_err(failed("revoke a key"))
    }
}

#[async_trait]
impl KeyVerification for Store {
    async fn key_by_hash(
        &self,
        hash: &KeyHash,
    ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError> {
        self.find_key(hash).await
    }

    async fn record_key_uses(&self, uses: &[(ApiKeyId, DateTime<Utc>)]) -> Result<(), StoreError> {
        for (id, at) in uses {
            let at = Timestamp(*at);
            let this = api_keys::table
                .filter(api_keys::id.eq(Id::from(*id)))
                .filter(api_keys::used_at.is_null().or(api_keys::used_at.lt(Some(at))));
            let written = with_conn!(self, |conn| {
                ::diesel::update(this).set(api_keys::used_at.eq(Some(at))).execute(conn).await
            });
            written.map_err(failed("note that a key was used"))?;
        }
        Ok(())
    }
}
