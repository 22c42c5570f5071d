//! The table of instances.

use ::diesel::prelude::*;
use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use domain::{
    id::{InstanceId, SessionId},
    placement::Instance,
    worker_region::WorkerRegion,
};
use ports::{
    StoreError,
    instances::{InstanceRegistry, MAX_ASKED, MAX_INSTANCES, ReportedInstance, SessionRegions},
};

use crate::engine::column::Id;
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, instances, sessions, teams};

#[derive(Queryable, Selectable)]
#[diesel(table_name = instances)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct InstanceRow {
    id: Id,
    address: String,
    region: Option<String>,
    slots: i32,
    sessions: i32,
    draining: bool,
    reports: i64,
    waiting: i32,
    waited: i32,
    leaving: i32,
}

impl InstanceRow {
    /// Returns the entry, or `None` for one that a later version wrote.
    fn read(self) -> Option<ReportedInstance> {
        let region = match self.region {
            Some(name) => Some(WorkerRegion::named(&name)?),
            None => None,
        };
        let instance = Instance {
            id: self.id.to(),
            address: self.address,
            region,
            slots: u32::try_from(self.slots).ok()?,
            sessions: u32::try_from(self.sessions).ok()?,
            waiting: u32::try_from(self.waiting).ok()?,
            leaving: u32::try_from(self.leaving).ok()?,
            waited: u32::try_from(self.waited).ok()?,
            is_draining: self.draining,
        };
        Some(ReportedInstance { instance, count: self.reports })
    }
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[async_trait]
impl InstanceRegistry for Store {
    async fn report(&self, own: &Instance) -> Result<(), StoreError> {
        let id = instances::id.eq(Id::from(own.id));
        let told = (
            instances::address.eq(&own.address),
            instances::region.eq(own.region.map(WorkerRegion::as_str)),
            instances::slots.eq(count(own.slots)),
            instances::sessions.eq(count(own.sessions)),
            instances::waiting.eq(count(own.waiting)),
            instances::leaving.eq(count(own.leaving)),
            instances::waited.eq(count(own.waited)),
            instances::draining.eq(own.is_draining),
        );
        let reported = with_conn!(self, |conn| {
            ::diesel::insert_into(instances::table)
                .values((id, told, instances::reports.eq(1)))
                .on_conflict(instances::id)
                .do_update()
                .set((told, instances::reports.eq(instances::reports + 1)))
                .execute(conn)
                .await
        });
        reported.map(drop).map_err(failed("report an instance"))
    }

    async fn instances(&self) -> Result<Vec<ReportedInstance>, StoreError> {
        let all = instances::table.order(instances::id).limit(MAX_INSTANCES.into());
        let read: QueryResult<Vec<InstanceRow>> =
            with_conn!(self, |conn| all.select(InstanceRow::as_select()).load(conn).await);
        let read = read.map_err(failed("read the instances"))?;
        Ok(read.into_iter().filter_map(InstanceRow::read).collect())
    }

    async fn remove(&self, id: InstanceId, count: Option<i64>) -> Result<(), StoreError> {
        let one = instances::table.filter(instances::id.eq(Id::from(id)));
        let removed = with_conn!(self, |conn| {
            match count {
                Some(count) => {
                    let unchanged = one.filter(instances::reports.eq(count));
                    ::diesel::delete(unchanged).execute(conn).await
                }
                None => ::diesel::delete(one).execute(conn).await,
            }
        });
        removed.map(drop).map_err(failed("delete an instance"))
    }
}

#[async_trait]
impl SessionRegions for Store {
    async fn sessions_that_may_leave(
        &self,
        ids: &[SessionId],
    ) -> Result<Vec<SessionId>, StoreError> {
        let ids: Vec<_> = ids.iter().copied().take(MAX_ASKED).map(Id::from).collect();
        let teams = teams::table.filter(teams::other_regions).select(teams::id);
        let owners = api_keys::table.filter(api_keys::team.eq_any(teams)).select(api_keys::id);
        let leaving = sessions::table.filter(sessions::id.eq_any(ids));
        let leaving = leaving.filter(sessions::owner.eq_any(owners)).select(sessions::id);
        let found: QueryResult<Vec<Id>> = with_conn!(self, |conn| leaving.load(conn).await);
        let found = found.map_err(failed("find sessions that may leave their region"))?;
        Ok(found.into_iter().map(Id::to).collect())
    }
}
