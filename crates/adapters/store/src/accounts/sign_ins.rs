//! Sign-ins to the portal; only the hash of a token is stored.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{SignInId, UserId},
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{
        CodeHash, HeldForms, RequestOrigin, SignIn, SignInStore, StoredUser, TeamMembership,
    },
};

use crate::accounts::users::UserRow;
use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{sign_ins, teams, users};

/// The precision of the time of last use; with a finer one each page would be a write.
const SEEN_PRECISION: TimeDelta = TimeDelta::minutes(1);

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = sign_ins)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct SignInRow {
    id: Id,
    person: Id,
    passed: bool,
    form_token: String,
    created_at: Timestamp,
    seen_at: Timestamp,
    expires_at: Timestamp,
    address: String,
    agent: String,
    confirmed_at: Option<Timestamp>,
    by_provider: bool,
}

impl SignInRow {
    fn of(sign_in: &SignIn) -> Self {
        Self {
            id: Id::from(sign_in.id),
            person: Id::from(sign_in.user),
            passed: sign_in.passed,
            form_token: sign_in.form_token.expose().to_owned(),
            created_at: Timestamp(sign_in.created_at),
            seen_at: Timestamp(sign_in.seen_at),
            expires_at: Timestamp(sign_in.expires_at),
            address: sign_in.from.address.to_string(),
            agent: sign_in.from.agent.clone(),
            confirmed_at: sign_in.confirmed_at.map(Timestamp),
            by_provider: sign_in.by_provider,
        }
    }

    fn read(self) -> Result<SignIn, StoreError> {
        let address = self.address.parse().map_err(failed("read an address back"))?;
        Ok(SignIn {
            id: self.id.to(),
            user: self.person.to(),
            passed: self.passed,
            by_provider: self.by_provider,
            confirmed_at: self.confirmed_at.map(|at| at.0),
            form_token: Secret::new(self.form_token),
            created_at: self.created_at.0,
            seen_at: self.seen_at.0,
            expires_at: self.expires_at.0,
            from: RequestOrigin { address, agent: self.agent },
        })
    }
}

#[async_trait]
impl SignInStore for Store {
    async fn add_sign_in(&self, sign_in: &SignIn, token: &CodeHash) -> Result<(), StoreError> {
        let row = (SignInRow::of(sign_in), sign_ins::token.eq(token.0.to_vec()));
        let written = with_conn!(self, |conn| {
            ::diesel::insert_into(sign_ins::table).values(row).execute(conn).await
        });
        written.map(drop).map_err(failed("sign somebody in"))
    }

    async fn sign_in(
        &self,
        token: &CodeHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<(SignIn, StoredUser, TeamMembership)>, StoreError> {
        let found: QueryResult<Option<(SignInRow, UserRow, String, bool)>> =
            with_conn!(self, |conn| {
                let live = sign_ins::table
                    .inner_join(users::table.inner_join(teams::table))
                    .filter(sign_ins::token.eq(token.0.as_slice()))
                    .filter(sign_ins::expires_at.gt(Timestamp(now)))
                    .filter(sign_ins::seen_at.gt(Timestamp(now - idle)));
                let home = (teams::name, teams::second_factor);
                let columns = (SignInRow::as_select(), UserRow::as_select(), home.0, home.1);
                live.select(columns).first(conn).await.optional()
            });
        let found = found.map_err(failed("find who is signed in"))?;
        let Some((row, user, name, needs_second_factor)) = found else { return Ok(None) };
        let home = TeamMembership { name, needs_second_factor };
        let sign_in = row.read()?;
        if now - sign_in.seen_at >= SEEN_PRECISION {
            let this = sign_ins::table.filter(sign_ins::id.eq(Id::from(sign_in.id)));
            let change = sign_ins::seen_at.eq(Timestamp(now));
            let seen =
                with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
            seen.map_err(failed("note that somebody was seen"))?;
        }
        Ok(self.stored_user(Some(user)).await?.map(|user| (sign_in, user, home)))
    }

    async fn mark_second_factor_verified(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let this = sign_ins::table.filter(sign_ins::token.eq(old.0.as_slice()));
        let change = (
            sign_ins::token.eq(new.0.as_slice()),
            sign_ins::passed.eq(true),
            sign_ins::expires_at.eq(Timestamp(until)),
        );
        let changed =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        changed.map(|rows| rows == 1).map_err(failed("pass a sign-in"))
    }

    async fn confirm_sign_in(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let this = sign_ins::table
            .filter(sign_ins::token.eq(old.0.as_slice()))
            .filter(sign_ins::passed.eq(true));
        let change =
            (sign_ins::token.eq(new.0.as_slice()), sign_ins::confirmed_at.eq(Some(Timestamp(at))));
        let changed =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        changed.map(|rows| rows == 1).map_err(failed("confirm a sign-in"))
    }

    async fn sign_ins(
        &self,
        user: UserId,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Vec<SignIn>, StoreError> {
        let rows: QueryResult<Vec<SignInRow>> = with_conn!(self, |conn| {
            sign_ins::table
                .filter(sign_ins::person.eq(Id::from(user)))
                .filter(sign_ins::expires_at.gt(Timestamp(now)))
                .filter(sign_ins::seen_at.gt(Timestamp(now - idle)))
                .order((sign_ins::created_at.desc(), sign_ins::id.desc()))
                .select(SignInRow::as_select())
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read who is signed in"))?;
        rows.into_iter().map(SignInRow::read).collect()
    }

    async fn end_sign_in(&self, user: UserId, id: SignInId) -> Result<bool, StoreError> {
        let this = sign_ins::table
            .filter(sign_ins::person.eq(Id::from(user)))
            .filter(sign_ins::id.eq(Id::from(id)));
        let gone = with_conn!(self, |conn| ::diesel::delete(this).execute(conn).await);
        gone.map(|rows| rows == 1).map_err(failed("sign somebody out"))
    }

    async fn end_other_sign_ins(
        &self,
        user: UserId,
        but: Option<SignInId>,
    ) -> Result<usize, StoreError> {
        let but = Id(but.map_or_else(uuid::Uuid::nil, |id| *id.as_uuid()));
        let these = sign_ins::table
            .filter(sign_ins::person.eq(Id::from(user)))
            .filter(sign_ins::id.ne(but));
        let gone = with_conn!(self, |conn| ::diesel::delete(these).execute(conn).await);
        gone.map_err(failed("sign somebody out"))
    }

    async fn delete_expired_sign_ins(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let these = sign_ins::table.filter(sign_ins::expires_at.le(Timestamp(now)));
        let gone = with_conn!(self, |conn| ::diesel::delete(these).execute(conn).await);
        gone.map_err(failed("forget sign-ins"))
    }
}

#[async_trait]
impl HeldForms for Store {
    async fn hold_form(&self, id: SignInId, sealed: &[u8]) -> Result<(), StoreError> {
        let this = sign_ins::table.filter(sign_ins::id.eq(Id::from(id)));
        let change = sign_ins::held_form.eq(Some(sealed));
        let held = with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        held.map(drop).map_err(failed("keep a form"))
    }

    async fn held_form(&self, id: SignInId) -> Result<Option<Vec<u8>>, StoreError> {
        let this = sign_ins::table.filter(sign_ins::id.eq(Id::from(id)));
        let held: QueryResult<Option<Option<Vec<u8>>>> = with_conn!(self, |conn| {
            this.select(sign_ins::held_form).first(conn).await.optional()
        });
        held.map(Option::flatten).map_err(failed("find a form"))
    }

    async fn drop_form(&self, id: SignInId, sealed: &[u8]) -> Result<bool, StoreError> {
        let this = sign_ins::table
            .filter(sign_ins::id.eq(Id::from(id)))
            .filter(sign_ins::held_form.eq(sealed));
        let change = sign_ins::held_form.eq(None::<Vec<u8>>);
        let gone = with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        gone.map(|rows| rows == 1).map_err(failed("forget a form"))
    }
}
