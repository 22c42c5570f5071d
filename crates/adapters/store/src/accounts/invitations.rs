//! Invitations to an address that another member already has.

use ::diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error::DatabaseError},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::id::UserId;
use ports::{StoreError, account_store::User, invitations::InvitationStore};

use crate::accounts::users::UserRow;
use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::users;

#[async_trait]
impl InvitationStore for Store {
    async fn add_invited(&self, user: &User, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let row = UserRow {
            id: Id::from(user.id),
            team: Id::from(user.team),
            // A placeholder that no member can have: no mail is delivered to this domain (RFC 2606,
            // section 2).
            email: format!("{}@invited.invalid", user.id),
            role: user.role.as_str().to_owned(),
            password: None,
            totp: None,
            created_at: Timestamp(now),
            passkeys: 0,
            subject: None,
            password_until: None,
            invited_as: Some(user.email.as_str().to_owned()),
        };
        let written = with_conn!(self, |conn| {
            let made = ::diesel::insert_into(users::table).values(&row);
            made.on_conflict_do_nothing().execute(conn).await
        });
        written.map(|rows| rows == 1).map_err(failed("invite a person"))
    }

    async fn claim_address(&self, id: UserId) -> Result<bool, StoreError> {
        let this =
            users::table.filter(users::id.eq(Id::from(id))).filter(users::invited_as.is_not_null());
        let change = (
            users::email.eq(users::invited_as.assume_not_null()),
            users::invited_as.eq(None::<String>),
        );
        let claimed =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        match claimed {
            Ok(_) => Ok(true),
            Err(DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Ok(false),
            Err(error) => Err(failed("claim an address")(error)),
        }
    }
}
