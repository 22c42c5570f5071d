//! The devices of sessions, and the codes by which others join.

use ::diesel::{dsl::max, prelude::*};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    binding::{DeviceNumber, JoinCode, JoinedBy, MAX_CODE_TRIES, MAX_DEVICES, SecretHash},
    id::SessionId,
};
use ports::{
    StoreError,
    device_store::{Binding, DeviceStore, RedeemOutcome},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{join_codes, session_devices, sessions};

#[derive(Insertable)]
#[diesel(table_name = session_devices)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct NewDevice {
    session: Id,
    number: i32,
    secret: Vec<u8>,
    joined_by: &'static str,
    joined_at: Timestamp,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = join_codes)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
#[diesel(treat_none_as_null = true)]
struct JoinCodeRow {
    session: Id,
    kind: &'static str,
    long: Vec<u8>,
    short: Option<Vec<u8>>,
    tries: i32,
    expires_at: Timestamp,
}

/// An entry of a session's timeline: time, event and device.
pub(crate) type DeviceColumns = (Timestamp, &'static str, Option<String>);

#[derive(Queryable, Selectable)]
#[diesel(table_name = session_devices)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct DeviceRow {
    number: i32,
    joined_by: String,
    joined_at: Timestamp,
    consented: Option<bool>,
    consented_at: Option<Timestamp>,
}

impl DeviceRow {
    pub(crate) fn lines(self) -> impl Iterator<Item = DeviceColumns> {
        let device = DeviceNumber(self.number);
        let joined =
            (self.joined_at, "DeviceJoined", Some(format!("{device}, {}", self.joined_by)));
        let event = if self.consented == Some(true) { "ConsentGiven" } else { "ConsentRefused" };
        let consented = self.consented_at.map(|at| (at, event, Some(device.to_string())));
        [Some(joined), consented].into_iter().flatten()
    }
}

/// Returns how a device joined by a code of this kind.
fn by_code(kind: &str) -> JoinedBy {
    if kind == JoinedBy::SentCode.as_str() { JoinedBy::SentCode } else { JoinedBy::ShownCode }
}

/// Adds a device to a session that has one. Returns `None` if the session has none yet, or the
/// maximum number. Two concurrent calls conflict on the device number, so that one of them fails
/// and is repeated.
macro_rules! add_device {
    ($conn:expr, $session:expr, $secret:expr, $by:expr, $at:expr) => {{
        let its = session_devices::table.filter(session_devices::session.eq($session));
        let known: Option<i32> = its
            .filter(session_devices::secret.eq(&$secret))
            .select(session_devices::number)
            .first($conn)
            .await
            .optional()?;
        let last: Option<i32> = its.select(max(session_devices::number)).first($conn).await?;
        match (known, last) {
            (Some(known), _) => Some(DeviceNumber(known)),
            (None, Some(last)) if last < MAX_DEVICES => {
                let number = last.saturating_add(1);
                let (secret, joined_by) = ($secret.clone(), $by.as_str());
                let row =
                    NewDevice { session: $session, number, secret, joined_by, joined_at: $at };
                ::diesel::insert_into(session_devices::table).values(&row).execute($conn).await?;
                Some(DeviceNumber(number))
            }
            (None, _) => None,
        }
    }};
}

#[async_trait]
impl DeviceStore for Store {
    async fn device(&self, session: SessionId, secret: &SecretHash) -> Result<Binding, StoreError> {
        let its = session_devices::table
            .filter(session_devices::session.eq(Id::from(session)))
            .select((session_devices::number, session_devices::secret));
        let read: QueryResult<Vec<(i32, Vec<u8>)>> = with_conn!(self, |conn| its.load(conn).await);
        let devices = read.map_err(failed("look for a device"))?;
        let known = devices.iter().find(|(_, known)| known.as_slice() == secret.0);
        Ok(match known {
            Some((number, _)) => Binding::Bound(DeviceNumber(*number)),
            None if devices.is_empty() => Binding::Unbound,
            None => Binding::Foreign,
        })
    }

    async fn bind(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let row = NewDevice {
            session: Id::from(session),
            number: 1,
            secret: secret.0.to_vec(),
            joined_by: JoinedBy::Start.as_str(),
            joined_at: Timestamp(at),
        };
        let bound: QueryResult<usize> = with_transaction!(self, |conn| {
            let there: i64 = sessions::table.find(row.session).count().get_result(conn).await?;
            if there == 0 {
                return Ok(0);
            }
            ::diesel::insert_into(session_devices::table)
                .values(&row)
                .on_conflict_do_nothing()
                .execute(conn)
                .await
        });
        bound.map(|rows| rows == 1).map_err(failed("bind a session to a device"))
    }

    async fn approve(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<Option<DeviceNumber>, StoreError> {
        let (session, secret, at) = (Id::from(session), secret.0.to_vec(), Timestamp(at));
        let added: QueryResult<Option<DeviceNumber>> = with_transaction!(self, |conn| {
            Ok(add_device!(conn, session, secret, JoinedBy::Approval, at))
        });
        added.map_err(failed("add an approved device"))
    }

    async fn offer_code(&self, code: &JoinCode) -> Result<(), StoreError> {
        let row = JoinCodeRow {
            session: Id::from(code.session),
            kind: code.by.as_str(),
            long: code.long.0.to_vec(),
            short: code.short.as_ref().map(|short| short.0.to_vec()),
            tries: 0,
            expires_at: Timestamp(code.expires_at),
        };
        let offered: QueryResult<usize> = with_conn!(self, |conn| {
            ::diesel::insert_into(join_codes::table)
                .values(&row)
                .on_conflict((join_codes::session, join_codes::kind))
                .do_update()
                .set(&row)
                .execute(conn)
                .await
        });
        offered.map(drop).map_err(failed("keep a code"))
    }

    async fn redeem_code(
        &self,
        session: SessionId,
        code: &SecretHash,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<RedeemOutcome, StoreError> {
        let (session, at) = (Id::from(session), Timestamp(at));
        let (code, secret) = (code.0.to_vec(), secret.0.to_vec());
        let redeemed: QueryResult<RedeemOutcome> = with_transaction!(self, |conn| {
            let live = join_codes::table
                .filter(join_codes::session.eq(session))
                .filter(join_codes::expires_at.gt(at));
            let by_long: Option<String> = live
                .filter(join_codes::long.eq(&code))
                .select(join_codes::kind)
                .first(conn)
                .await
                .optional()?;
            let kind = if by_long.is_some() {
                by_long
            } else {
                // Counted first: a concurrent request that waits for this row then has one attempt
                // fewer.
                let typed: Vec<(String, Option<Vec<u8>>)> = ::diesel::update(
                    join_codes::table
                        .filter(join_codes::session.eq(session))
                        .filter(join_codes::expires_at.gt(at))
                        .filter(join_codes::short.is_not_null())
                        .filter(join_codes::tries.lt(MAX_CODE_TRIES)),
                )
                .set(join_codes::tries.eq(join_codes::tries + 1))
                .returning((join_codes::kind, join_codes::short))
                .get_results(conn)
                .await?;
                let right = typed.into_iter().find(|(_, short)| short.as_ref() == Some(&code));
                right.map(|(kind, _)| kind)
            };
            let Some(kind) = kind else { return Ok(RedeemOutcome::Refused) };
            // If two requests present the same code concurrently, the second one finds it used.
            let this = join_codes::table
                .find((session, &kind))
                .filter(join_codes::long.eq(&code).or(join_codes::short.eq(Some(&code))));
            if ::diesel::delete(this).execute(conn).await? == 0 {
                return Ok(RedeemOutcome::Refused);
            }
            let by = by_code(&kind);
            Ok(match add_device!(conn, session, secret, by, at) {
                Some(number) => RedeemOutcome::Joined(number, by),
                None => RedeemOutcome::Full,
            })
        });
        redeemed.map_err(failed("redeem a code"))
    }

    async fn record_consent(
        &self,
        session: SessionId,
        device: DeviceNumber,
        agreed: bool,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let this = session_devices::table.find((Id::from(session), device.0));
        let answer = (
            session_devices::consented.eq(Some(agreed)),
            session_devices::consented_at.eq(Some(Timestamp(at))),
        );
        let noted: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(this).set(answer).execute(conn).await);
        noted.map(drop).map_err(failed("note a consent"))
    }

    async fn delete_expired_codes(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let these = join_codes::table.filter(join_codes::expires_at.le(Timestamp(now)));
        let gone: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::delete(these).execute(conn).await);
        gone.map_err(failed("forget codes"))
    }
}
