//! Portal users. Their TOTP secrets are encrypted.

use ::diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error::DatabaseError},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    account::{Email, Role},
    id::{TeamId, UserId},
    secret::Secret,
};
use ports::{
    Reencrypted, StoreError,
    account_store::{
        CodeHash, MembershipChange, NewPassword, PasswordHash, ProviderSubjects, SecondFactor,
        SecondFactors, StoredUser, TeamMembers, User, UserStore,
    },
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{account_links, recovery_codes, teams, users};

/// The encryption context of TOTP secrets.
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
    /// The address to which the invitation was sent, or the member's address.
    fn address(&self) -> &str {
        self.invited_as.as_ref().unwrap_or(&self.email)
    }

    pub(crate) fn user(&self) -> Result<User, StoreError> {
        Ok(User {
            id: self.id.to(),
            team: self.team.to(),
            email: self.address().parse().map_err(failed("read an address back"))?,
            role: self.role.parse().map_err(failed("read a role back"))?,
            has_password: self.password.is_some(),
            has_second_factor: self.totp.is_some() || self.passkeys > 0,
            created_at: self.created_at.0,
        })
    }
}

impl Store {
    pub(crate) async fn stored_user(
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

const GOVERNS: [&str; 2] = [Role::Owner.as_str(), Role::Operator.as_str()];

/// Changes a member if somebody remains who governs the team and can sign in. The team's row is
/// locked meanwhile, so that of two concurrent changes the second one sees the first.
macro_rules! change_governed {
    ($conn:expr, $id:expr, $left:expr, $locked:expr, $change:expr) => {{
        let _: Option<Id> = $locked;
        let there = users::table.filter(users::id.eq($id.1)).filter(users::team.eq($id.0));
        let role: Option<String> = there.select(users::role).first($conn).await.optional()?;
        let others = users::table
            .filter(users::team.eq($id.0))
            .filter(users::id.ne($id.1))
            .filter(users::role.eq_any(GOVERNS))
            .filter(users::password.is_not_null());
        match role {
            None => Ok(MembershipChange::Nobody),
            Some(_) if !$left && others.count().get_result::<i64>($conn).await? == 0 => {
                Ok(MembershipChange::Last)
            }
            Some(_) => {
                $change;
                Ok(MembershipChange::Done)
            }
        }
    }};
}

/// Reads the member that matches a condition.
macro_rules! find {
    ($store:expr, $so:expr) => {{
        let found: QueryResult<Option<UserRow>> = with_conn!($store, |conn| {
            users::table.filter($so).select(UserRow::as_select()).first(conn).await.optional()
        });
        $store.stored_user(found.map_err(failed("find a person"))?).await
    }};
}

#[async_trait]
impl UserStore for Store {
    async fn add_user(
        &self,
        user: &User,
        password: Option<&NewPassword>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let row = UserRow {
            id: Id::from(user.id),
            team: Id::from(user.team),
            email: user.email.as_str().to_owned(),
            role: user.role.as_str().to_owned(),
            password: password.map(|password| password.hash.0.clone()),
            totp: None,
            created_at: Timestamp(now),
            passkeys: 0,
            subject: None,
            invited_as: None,
            password_until: password.and_then(|password| password.until).map(Timestamp),
        };
        let written = with_conn!(self, |conn| {
            ::diesel::insert_into(users::table)
                .values(&row)
                .on_conflict(users::email)
                .do_nothing()
                .execute(conn)
                .await
        });
        written.map(|rows| rows == 1).map_err(failed("add a person"))
    }

    async fn user_by_email(&self, email: &Email) -> Result<Option<StoredUser>, StoreError> {
        find!(self, users::email.eq(email.as_str()).and(users::invited_as.is_null()))
    }

    async fn user(&self, id: UserId) -> Result<Option<StoredUser>, StoreError> {
        find!(self, users::id.eq(Id::from(id)))
    }

    async fn set_password(&self, id: UserId, password: &NewPassword) -> Result<(), StoreError> {
        let id = Id::from(id);
        let until = password.until.map(Timestamp);
        let change = (users::password.eq(Some(&password.hash.0)), users::password_until.eq(until));
        let changed: QueryResult<()> = with_transaction!(self, |conn| {
            ::diesel::update(users::table.filter(users::id.eq(id)))
                .set(change)
                .execute(conn)
                .await?;
            let links = account_links::table.filter(account_links::person.eq(id));
            ::diesel::delete(links).execute(conn).await?;
            Ok(())
        });
        changed.map_err(failed("set a password"))
    }

    async fn reencrypt_users(
        &self,
        after: Option<UserId>,
        limit: u16,
    ) -> Result<Reencrypted<UserId>, StoreError> {
        let after = after.map_or_else(uuid::Uuid::nil, |user| *user.as_uuid());
        let some = users::table
            .filter(users::id.gt(Id(after)))
            .filter(users::totp.is_not_null())
            .order(users::id)
            .limit(limit.into())
            .select((users::id, users::totp.assume_not_null()));
        let rows: QueryResult<Vec<(Id, Vec<u8>)>> = with_conn!(self, |conn| some.load(conn).await);
        let rows = rows.map_err(failed("read people"))?;
        let mut done = Reencrypted { changed: 0, unreadable: vec![], next: None };
        for (id, sealed) in rows.iter().filter(|(_, sealed)| !self.cipher.is_current(TOTP, sealed))
        {
            let Ok(plain) = self.cipher.decrypt_text(TOTP, sealed) else {
                done.unreadable.push(id.to());
                continue;
            };
            let anew =
                self.cipher.encrypt_text(TOTP, &plain).map_err(failed("seal a secret anew"))?;
            // A member who got a new secret meanwhile is not changed.
            let this = users::table.filter(users::id.eq(id)).filter(users::totp.eq(sealed));
            let changed: QueryResult<usize> = with_conn!(self, |conn| {
                ::diesel::update(this).set(users::totp.eq(Some(anew))).execute(conn).await
            });
            done.changed += changed.map_err(failed("seal a secret anew"))?;
        }
        let last = rows.last().filter(|_| rows.len() >= usize::from(limit));
        done.next = last.map(|(id, _)| id.to());
        Ok(done)
    }
}

#[async_trait]
impl ProviderSubjects for Store {
    async fn user_by_subject(&self, subject: &str) -> Result<Option<StoredUser>, StoreError> {
        find!(self, users::subject.eq(subject))
    }

    async fn bind_subject(
        &self,
        id: UserId,
        before: Option<&str>,
        subject: &str,
    ) -> Result<bool, StoreError> {
        let this = users::table.filter(users::id.eq(Id::from(id)));
        let change = users::subject.eq(subject);
        let bound = with_conn!(self, |conn| if let Some(before) = before {
            let still = this.filter(users::subject.eq(before));
            ::diesel::update(still).set(change).execute(conn).await
        } else {
            let unbound = this.filter(users::subject.is_null());
            ::diesel::update(unbound).set(change).execute(conn).await
        });
        match bound {
            Ok(rows) => Ok(rows == 1),
            Err(DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Ok(false),
            Err(error) => Err(failed("bind a person")(error)),
        }
    }
}

#[async_trait]
impl TeamMembers for Store {
    async fn users(&self, team: TeamId) -> Result<Vec<User>, StoreError> {
        let rows: QueryResult<Vec<UserRow>> = with_conn!(self, |conn| {
            let theirs = users::table.filter(users::team.eq(Id::from(team)));
            theirs.order(users::email).select(UserRow::as_select()).load(conn).await
        });
        rows.map_err(failed("read a team's people"))?.iter().map(UserRow::user).collect()
    }

    async fn set_role(
        &self,
        team: TeamId,
        id: UserId,
        role: Role,
    ) -> Result<MembershipChange, StoreError> {
        let ids = (Id::from(team), Id::from(id));
        let team = teams::table.filter(teams::id.eq(ids.0)).select(teams::id);
        let this = users::table.filter(users::id.eq(ids.1));
        let (governs, change) = (GOVERNS.contains(&role.as_str()), users::role.eq(role.as_str()));
        let done: QueryResult<MembershipChange> = with_transaction!(
            self,
            postgres | conn | {
                let locked = team.for_no_key_update().first(conn).await.optional()?;
                change_governed!(conn, ids, governs, locked, {
                    ::diesel::update(this).set(change).execute(conn).await?;
                })
            },
            sqlite | conn | {
                change_governed!(conn, ids, governs, None, {
                    ::diesel::update(this).set(change).execute(conn).await?;
                })
            }
        );
        done.map_err(failed("set a role"))
    }

    async fn remove_user(&self, team: TeamId, id: UserId) -> Result<MembershipChange, StoreError> {
        let ids = (Id::from(team), Id::from(id));
        let team = teams::table.filter(teams::id.eq(ids.0)).select(teams::id);
        let this = users::table.filter(users::id.eq(ids.1));
        let done: QueryResult<MembershipChange> = with_transaction!(
            self,
            postgres | conn | {
                let locked = team.for_no_key_update().first(conn).await.optional()?;
                change_governed!(conn, ids, false, locked, {
                    ::diesel::delete(this).execute(conn).await?;
                })
            },
            sqlite | conn | {
                change_governed!(conn, ids, false, None, {
                    ::diesel::delete(this).execute(conn).await?;
                })
            }
        );
        done.map_err(failed("take a person out"))
    }

    async fn require_second_factor(&self, team: TeamId, required: bool) -> Result<(), StoreError> {
        let this = teams::table.filter(teams::id.eq(Id::from(team)));
        let change = teams::second_factor.eq(required);
        let done = with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        done.map(drop).map_err(failed("require a second factor"))
    }

    async fn requires_second_factor(&self, team: TeamId) -> Result<bool, StoreError> {
        let this = teams::table.filter(teams::id.eq(Id::from(team)));
        let found: QueryResult<Option<bool>> = with_conn!(self, |conn| {
            this.select(teams::second_factor).first(conn).await.optional()
        });
        Ok(found.map_err(failed("read what a team requires"))?.unwrap_or(false))
    }
}

#[async_trait]
impl SecondFactors for Store {
    async fn set_second_factor(
        &self,
        id: UserId,
        factor: Option<&SecondFactor>,
    ) -> Result<(), StoreError> {
        let unfit = failed("seal the secret of one-time codes");
        let sealed = factor.map(|factor| self.cipher.encrypt_text(TOTP, factor.totp.expose()));
        let sealed = sealed.transpose().map_err(unfit)?;
        let id = Id::from(id);
        let change = (users::totp.eq(sealed), users::totp_step.eq(factor.map_or(0, |f| f.step)));
        let most = if factor.is_some() { i32::MAX } else { 0 };
        let codes = factor.map_or(&[][..], |factor| &factor.recovery);
        let codes: Vec<_> = codes
            .iter()
            .map(|code| (recovery_codes::owner.eq(id), recovery_codes::hash.eq(code.0.to_vec())))
            .collect();
        let done: QueryResult<()> = with_transaction!(self, |conn| {
            let whose = users::table.filter(users::id.eq(id)).select(users::id);
            // A remaining passkey still needs them.
            let bare = whose.filter(users::passkeys.le(most));
            let old = recovery_codes::table.filter(recovery_codes::owner.eq_any(bare));
            ::diesel::delete(old).execute(conn).await?;
            let this = users::table.filter(users::id.eq(id));
            ::diesel::update(this).set(change.clone()).execute(conn).await?;
            for code in &codes {
                ::diesel::insert_into(recovery_codes::table).values(code).execute(conn).await?;
            }
            Ok(())
        });
        done.map_err(failed("set a second factor"))
    }

    async fn use_step(&self, id: UserId, step: i64) -> Result<bool, StoreError> {
        let this =
            users::table.filter(users::id.eq(Id::from(id))).filter(users::totp_step.lt(step));
        let changed = with_conn!(self, |conn| {
            ::diesel::update(this).set(users::totp_step.eq(step)).execute(conn).await
        });
        changed.map(|rows| rows == 1).map_err(failed("use up a one-time code"))
    }

    async fn use_recovery(&self, id: UserId, code: &CodeHash) -> Result<bool, StoreError> {
        let this = recovery_codes::table
            .filter(recovery_codes::owner.eq(Id::from(id)))
            .filter(recovery_codes::hash.eq(code.0.as_slice()));
        let gone = with_conn!(self, |conn| ::diesel::delete(this).execute(conn).await);
        gone.map(|rows| rows == 1).map_err(failed("use up a recovery code"))
    }
}
