//! People of the portal as their table has them.

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::{
    id::{TeamId, UserId},
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{PasswordHash, StoredUser, User},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{recovery_codes, users};

/// Where the secrets of one-time codes are sealed.
pub(crate) const TOTP: &str = "users.totp";

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = users)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct UserRow {
    pub(crate) id: Id,
    pub(crate) team: Id,
    pub(crate) email: String,
    pub(crate) role: String,
    pub(crate) password: Option<String>,
    pub(crate) totp: Option<Vec<u8>>,
    pub(crate) created_at: Timestamp,
    pub(crate) passkeys: i32,
    pub(crate) subject: Option<String>,
    pub(crate) invited_as: Option<String>,
    pub(crate) password_until: Option<Timestamp>,
}

impl UserRow {
    /// The address that they were invited by, or have.
    fn address(&self) -> &str {
        self.invited_as.as_ref().unwrap_or(&self.email)
    }

    pub(crate) fn user(&self) -> Result<User, StoreError> {
        Ok(User {
            id: UserId::from_uuid(self.id.0),
            team: TeamId::from_uuid(self.team.0),
            email: self.address().parse().map_err(failed("read an address back"))?,
            role: self.role.parse().map_err(failed("read a role back"))?,
            has_password: self.password.is_some(),
            has_second_factor: self.totp.is_some() || self.passkeys > 0,
            created_at: self.created_at.0,
        })
    }
}

impl Store {
    pub(crate) async fn kept_user(
        &self,
        row: Option<UserRow>,
    ) -> Result<Option<StoredUser>, StoreError> {
        let Some(row) = row else { return Ok(None) };
        let codes = recovery_codes::table.filter(recovery_codes::owner.eq(row.id)).count();
        let left: QueryResult<i64> = with_conn!(self, |conn| codes.get_result(conn).await);
        let left = left.map_err(failed("count recovery codes"))?;
        let totp = row.totp.as_ref().map(|sealed| self.cipher.decrypt_text(TOTP, sealed));
        let totp = totp.transpose().map_err(failed("open the secret of one-time codes"))?;
        Ok(Some(StoredUser {
            user: row.user()?,
            password: row.password.map(PasswordHash),
            password_until: row.password_until.map(|until| until.0),
            subject: row.subject,
            totp: totp.map(Secret::new),
            passkeys: usize::try_from(row.passkeys).unwrap_or(0),
            recovery_codes_left: usize::try_from(left).unwrap_or(0),
        }))
    }
}
