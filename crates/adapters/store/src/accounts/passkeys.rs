//! The passkeys of members.

use ::diesel::{prelude::*, result::Error::RollbackTransaction};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::id::{PasskeyId, UserId};
use ports::{
    StoreError,
    account_store::CodeHash,
    passkeys::{Credential, MAX_PASSKEYS, PasskeyStore, StoredPasskey},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{passkeys, recovery_codes, users};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = passkeys)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct PasskeyRow {
    id: Id,
    person: Id,
    name: String,
    credential: Vec<u8>,
    public_key: Vec<u8>,
    state: Vec<u8>,
    transports: i16,
    created_at: Timestamp,
    used_at: Option<Timestamp>,
}

impl PasskeyRow {
    fn of(passkey: &StoredPasskey) -> Self {
        let Credential { id, key, state, transports } = passkey.credential.clone();
        Self {
            id: Id::from(passkey.id),
            person: Id::from(passkey.user),
            name: passkey.name.clone(),
            credential: id,
            public_key: key,
            state,
            transports: transports.into(),
            created_at: Timestamp(passkey.created_at),
            used_at: passkey.used_at.map(Timestamp),
        }
    }

    fn read(self) -> Result<StoredPasskey, StoreError> {
        let transports = self.transports.try_into().map_err(failed("read a passkey back"))?;
        Ok(StoredPasskey {
            id: self.id.to(),
            user: self.person.to(),
            name: self.name,
            credential: Credential {
                id: self.credential,
                key: self.public_key,
                state: self.state,
                transports,
            },
            created_at: self.created_at.0,
            used_at: self.used_at.map(|at| at.0),
        })
    }
}

#[async_trait]
impl PasskeyStore for Store {
    async fn add_passkey(
        &self,
        passkey: &StoredPasskey,
        recovery: Option<&[CodeHash]>,
    ) -> Result<bool, StoreError> {
        let (row, person) = (PasskeyRow::of(passkey), Id::from(passkey.user));
        let codes = recovery.unwrap_or_default().iter();
        let codes: Vec<_> = codes
            .map(|code| {
                (recovery_codes::owner.eq(person), recovery_codes::hash.eq(code.0.to_vec()))
            })
            .collect();
        let most = i32::try_from(MAX_PASSKEYS).unwrap_or(i32::MAX);
        let has_factor = users::passkeys.gt(0).or(users::totp.is_not_null());
        let fits = has_factor.eq(recovery.is_none()).and(users::passkeys.lt(most));
        let done: QueryResult<()> = with_transaction!(self, |conn| {
            // Recovery codes are stored only with the first factor, whatever was the case when they
            // were generated.
            let this = users::table.filter(users::id.eq(person)).filter(fits);
            let counted = users::passkeys.eq(users::passkeys + 1);
            if ::diesel::update(this).set(counted).execute(conn).await? == 0 {
                return Err(RollbackTransaction);
            }
            let added = ::diesel::insert_into(passkeys::table)
                .values(&row)
                .on_conflict(passkeys::credential)
                .do_nothing();
            if added.execute(conn).await? == 0 {
                return Err(RollbackTransaction);
            }
            for code in &codes {
                ::diesel::insert_into(recovery_codes::table).values(code).execute(conn).await?;
            }
            Ok(())
        });
        match done {
            Ok(()) => Ok(true),
            Err(RollbackTransaction) => Ok(false),
            Err(error) => Err(failed("add a passkey")(error)),
        }
    }

    async fn passkeys(&self, user: UserId) -> Result<Vec<StoredPasskey>, StoreError> {
        let rows: QueryResult<Vec<PasskeyRow>> = with_conn!(self, |conn| {
            passkeys::table
                .filter(passkeys::person.eq(Id::from(user)))
                .order((passkeys::created_at, passkeys::id))
                .select(PasskeyRow::as_select())
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read somebody's passkeys"))?;
        rows.into_iter().map(PasskeyRow::read).collect()
    }

    async fn use_passkey(
        &self,
        id: PasskeyId,
        (old, new): (&[u8], &[u8]),
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let this = passkeys::table.find(Id::from(id)).filter(passkeys::state.eq(old));
        let change = (passkeys::state.eq(new), passkeys::used_at.eq(Some(Timestamp(now))));
        let used = with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        used.map(|rows| rows == 1).map_err(failed("use a passkey"))
    }

    async fn remove_passkey(&self, user: UserId, id: PasskeyId) -> Result<bool, StoreError> {
        let (person, id) = (Id::from(user), Id::from(id));
        let gone: QueryResult<bool> = with_transaction!(self, |conn| {
            let this = passkeys::table.find(id).filter(passkeys::person.eq(person));
            if ::diesel::delete(this).execute(conn).await? == 0 {
                return Ok(false);
            }
            let whose = users::table.filter(users::id.eq(person));
            let counted = users::passkeys.eq(users::passkeys - 1);
            ::diesel::update(whose).set(counted).execute(conn).await?;
            let bare = users::table
                .filter(users::id.eq(person))
                .filter(users::passkeys.eq(0))
                .filter(users::totp.is_null())
                .select(users::id);
            let useless = recovery_codes::table.filter(recovery_codes::owner.eq_any(bare));
            ::diesel::delete(useless).execute(conn).await?;
            Ok(true)
        });
        gone.map_err(failed("forget a passkey"))
    }
}
