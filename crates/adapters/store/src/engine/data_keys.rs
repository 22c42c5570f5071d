//! The maintenance of data keys: encrypted with another key of the deployment, replaced, and
//! destroyed.

use ::diesel::{dsl::exists, prelude::*, select};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use ports::{
    Reencrypted, StoreError,
    encryption_maintenance::{EncryptedTable, EncryptionMaintenance},
};
use uuid::Uuid;

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::{prefix, wrapping};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{
    data_keys, definition_drafts, delivery_attempts, notices, receivers, sessions,
};

/// Rows that one query reads.
const QUERY_BATCH: i64 = 500;

#[async_trait]
impl EncryptionMaintenance for Store {
    async fn rewrap_data_keys(
        &self,
        after: Option<i64>,
        limit: u16,
    ) -> Result<Reencrypted<i64>, StoreError> {
        let rows: QueryResult<Vec<(i64, Id, Vec<u8>)>> = with_conn!(self, |conn| {
            data_keys::table
                .filter(data_keys::number.gt(after.unwrap_or(0)))
                .order(data_keys::number)
                .limit(limit.into())
                .select((data_keys::number, data_keys::team, data_keys::wrapped))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read data keys"))?;
        let mut done = Reencrypted { changed: 0, unreadable: vec![], next: None };
        for (number, team, wrapped) in &rows {
            if self.cipher.is_current(&wrapping(team.0), wrapped) {
                continue;
            }
            let Ok(secret) = self.cipher.decrypt(&wrapping(team.0), wrapped) else {
                done.unreadable.push(*number);
                continue;
            };
            let secret = zeroize::Zeroizing::new(secret);
            let rewrapped = self.cipher.encrypt(&wrapping(team.0), &secret);
            let rewrapped = rewrapped.map_err(failed("wrap a data key"))?;
            let this = data_keys::table.find(*number).filter(data_keys::wrapped.eq(wrapped));
            let changed: QueryResult<usize> = with_conn!(self, |conn| {
                ::diesel::update(this).set(data_keys::wrapped.eq(&rewrapped)).execute(conn).await
            });
            done.changed += changed.map_err(failed("wrap a data key anew"))?;
        }
        let last = rows.last().filter(|_| rows.len() >= usize::from(limit));
        done.next = last.map(|(number, ..)| *number);
        Ok(done)
    }

    async fn replace_data_keys(&self) -> Result<usize, StoreError> {
        let (mut after, mut made) = (Id(Uuid::nil()), 0);
        loop {
            let teams: QueryResult<Vec<Id>> = with_conn!(self, |conn| {
                data_keys::table
                    .filter(data_keys::team.gt(after))
                    .select(data_keys::team)
                    .distinct()
                    .order(data_keys::team)
                    .limit(QUERY_BATCH)
                    .load(conn)
                    .await
            });
            let teams = teams.map_err(failed("find teams with data keys"))?;
            let Some(last) = teams.last() else { break };
            after = *last;
            for team in teams {
                self.add_data_key(team).await?;
                made += 1;
            }
        }
        self.keyring.forget_current();
        Ok(made)
    }

    /// With [`super::keyring::Encryption::Prepare`] it decrypts instead.
    async fn encrypt_rows(
        &self,
        table: EncryptedTable,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError> {
        let after = Id(after.unwrap_or_else(Uuid::nil));
        match table {
            EncryptedTable::Sessions => self.encrypt_sessions(after, limit).await,
            EncryptedTable::Notices => self.encrypt_notices(after, limit).await,
            EncryptedTable::Attempts => self.encrypt_attempts(after, limit).await,
            EncryptedTable::Contacts => self.encrypt_receivers(after, limit).await,
            EncryptedTable::Drafts => self.encrypt_drafts(after, limit).await,
        }
    }

    /// Looks through all encrypted columns for each replaced key.
    async fn drop_data_keys(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        let newer = ::diesel::alias!(data_keys as newer);
        let replaced = exists(
            newer
                .filter(newer.field(data_keys::team).eq(data_keys::team))
                .filter(newer.field(data_keys::number).gt(data_keys::number))
                .filter(newer.field(data_keys::created_at).lt(Timestamp(before))),
        );
        let old = data_keys::table.filter(replaced).select(data_keys::number).limit(QUERY_BATCH);
        let old: QueryResult<Vec<i64>> = with_conn!(self, |conn| old.load(conn).await);
        let mut dropped = 0;
        for number in old.map_err(failed("find data keys that were replaced"))? {
            if self.is_named(number).await? {
                continue;
            }
            let this = data_keys::table.find(number);
            let gone: QueryResult<usize> =
                with_conn!(self, |conn| ::diesel::delete(this).execute(conn).await);
            dropped += gone.map_err(failed("destroy a data key"))?;
        }
        Ok(dropped)
    }
}

impl Store {
    /// Returns whether a row has a value that this key encrypted.
    async fn is_named(&self, number: i64) -> Result<bool, StoreError> {
        let like = format!("{}%", prefix(number));
        let found: QueryResult<bool> = with_conn!(self, |conn| {
            select(
                exists(
                    sessions::table.filter(
                        sessions::terms
                            .like(&like)
                            .or(sessions::state.like(&like))
                            .or(sessions::reference.assume_not_null().like(&like)),
                    ),
                )
                .or(exists(notices::table.filter(notices::body.like(&like))))
                .or(exists(
                    delivery_attempts::table
                        .filter(delivery_attempts::answer.assume_not_null().like(&like)),
                ))
                .or(exists(
                    receivers::table.filter(
                        receivers::name
                            .assume_not_null()
                            .like(&like)
                            .or(receivers::email.assume_not_null().like(&like))
                            .or(receivers::phone.assume_not_null().like(&like)),
                    ),
                ))
                .or(exists(
                    definition_drafts::table
                        .filter(definition_drafts::fixture.assume_not_null().like(&like)),
                )),
            )
            .get_result(conn)
            .await
        });
        found.map_err(failed("look for values of a data key"))
    }
}
