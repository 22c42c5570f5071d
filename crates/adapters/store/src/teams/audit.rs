//! The audit log of the portal, in which each entry has the hash of the previous one.

use ::diesel::prelude::*;
use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use domain::{
    audit::{AuditEntry, AuditEvent},
    id::TeamId,
};
use ports::{StoreError, audit_log::AuditLog};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{audit_entries, teams};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = audit_entries)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct AuditRow {
    team: Id,
    number: i64,
    at: Timestamp,
    actor: String,
    address: Option<String>,
    action: String,
    subject: String,
    hash: Vec<u8>,
}

impl AuditRow {
    fn of(team: TeamId, entry: &AuditEntry) -> Self {
        let event = &entry.event;
        Self {
            team: Id::from(team),
            number: entry.number,
            at: Timestamp(event.at),
            actor: event.actor.clone(),
            address: event.address.map(|address| address.to_string()),
            action: event.action.clone(),
            subject: event.subject.clone(),
            hash: entry.hash.to_vec(),
        }
    }

    fn read(self) -> Result<AuditEntry, StoreError> {
        let address = self.address.map(|address| address.parse()).transpose();
        Ok(AuditEntry {
            number: self.number,
            event: AuditEvent {
                at: self.at.0,
                actor: self.actor,
                address: address.map_err(failed("read an address back"))?,
                action: self.action,
                subject: self.subject,
            },
            hash: self.hash.try_into().unwrap_or_default(),
        })
    }
}

/// Returns the entry that follows the last one of a team.
macro_rules! follow {
    ($conn:expr, $team:expr, $event:expr) => {{
        let last: Option<(i64, Vec<u8>)> = audit_entries::table
            .filter(audit_entries::team.eq(Id(*$team.as_uuid())))
            .order(audit_entries::number.desc())
            .select((audit_entries::number, audit_entries::hash))
            .first($conn)
            .await
            .optional()?;
        let (number, mut hashed) = last.unwrap_or((0, vec![0; 32]));
        let number = number.saturating_add(1);
        hashed.extend_from_slice($event.text($team, number).as_bytes());
        let entry = AuditEntry {
            number,
            event: $event.clone(),
            hash: crate::engine::hash::sha256(&hashed),
        };
        ::diesel::insert_into(audit_entries::table)
            .values(AuditRow::of($team, &entry))
            .execute($conn)
            .await?;
        Ok(())
    }};
}

#[async_trait]
impl AuditLog for Store {
    async fn note(&self, team: TeamId, event: &AuditEvent) -> Result<(), StoreError> {
        let row = teams::table.filter(teams::id.eq(Id::from(team))).select(teams::id);
        let noted: QueryResult<()> = with_transaction!(
            self,
            postgres | conn | {
                // Serializes appends to a team's log; inserts of rows that merely refer to the team
                // do not wait.
                let _: Id = row.for_no_key_update().first(conn).await?;
                follow!(conn, team, event)
            },
            sqlite | conn | { follow!(conn, team, event) }
        );
        noted.map_err(failed("write down what was done"))
    }

    async fn entries(
        &self,
        team: TeamId,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let rows: QueryResult<Vec<AuditRow>> = with_conn!(self, |conn| {
            audit_entries::table
                .filter(audit_entries::team.eq(Id::from(team)))
                .filter(audit_entries::number.lt(before.unwrap_or(i64::MAX)))
                .order(audit_entries::number.desc())
                .limit(limit.into())
                .select(AuditRow::as_select())
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read what was done"))?;
        rows.into_iter().map(AuditRow::read).collect()
    }
}
