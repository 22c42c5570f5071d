//! The table of instances.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::{
    id::{InstanceId, SessionId},
    placement::Instance,
};
use ports::{
    StoreError,
    instances::{InstanceRegistry, MAX_ASKED, MAX_INSTANCES, ReportedInstance, SessionRegions},
};

use crate::MemoryStore;

/// The instances by their identifiers.
pub(crate) type Instances = BTreeMap<InstanceId, ReportedInstance>;

#[async_trait]
impl InstanceRegistry for MemoryStore {
    async fn report(&self, own: &Instance) -> Result<(), StoreError> {
        let instances = &mut self.state().instances;
        let count = instances.get(&own.id).map_or(0, |known| known.count).saturating_add(1);
        instances.insert(own.id, ReportedInstance { instance: own.clone(), count });
        Ok(())
    }

    async fn instances(&self) -> Result<Vec<ReportedInstance>, StoreError> {
        Ok(self.state().instances.values().take(MAX_INSTANCES.into()).cloned().collect())
    }

    async fn remove(&self, id: InstanceId, count: Option<i64>) -> Result<(), StoreError> {
        let instances = &mut self.state().instances;
        if instances.get(&id).is_some_and(|known| count.is_none_or(|count| known.count == count)) {
            instances.remove(&id);
        }
        Ok(())
    }
}

#[async_trait]
impl SessionRegions for MemoryStore {
    async fn sessions_that_may_leave(
        &self,
        ids: &[SessionId],
    ) -> Result<Vec<SessionId>, StoreError> {
        let state = self.state();
        let may_leave = |id: &SessionId| {
            let team = state.team_of_session(*id).and_then(|team| state.teams.team(team));
            team.is_some_and(|team| team.other_regions)
        };
        Ok(ids.iter().copied().take(MAX_ASKED).filter(may_leave).collect())
    }
}
