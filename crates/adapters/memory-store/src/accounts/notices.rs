//! The queue of notices, the mails about events of an account.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use ports::{
    StoreError,
    notice_store::{Notice, NoticeClaim, NoticeStore},
};

use super::AccountState;
use crate::{
    MemoryStore,
    schedule::{Schedule, earliest},
};

/// A notice to be sent.
pub(super) struct NoticeRecord {
    pub(super) notice: Notice,
    schedule: Schedule,
}

impl AccountState {
    fn claim_notices(
        &mut self,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
    ) -> Vec<NoticeClaim> {
        let due = self.notices.iter().filter(|(_, record)| record.schedule.is_due(now));
        let due = earliest(due.map(|(id, record)| (record.schedule.due, *id)), limit);
        let claims = due.into_iter().filter_map(|id| {
            let record = self.notices.get_mut(&id)?;
            let email = self.users.get(&record.notice.user)?.email.clone();
            let attempt = record.schedule.claim(now, lease);
            Some(NoticeClaim { notice: record.notice.clone(), email, attempt })
        });
        claims.collect()
    }

    fn settle_notice(&mut self, claim: &NoticeClaim, again: Option<DateTime<Utc>>) -> bool {
        let id = claim.notice.id;
        let record = self.notices.get_mut(&id);
        let Some(record) = record.filter(|record| record.schedule.attempt == claim.attempt) else {
            return false;
        };
        match again {
            Some(due) => record.schedule.due = due,
            None => drop(self.notices.remove(&id)),
        }
        true
    }
}

#[async_trait]
impl NoticeStore for MemoryStore {
    async fn enqueue_notice(&self, notice: &Notice) -> Result<(), StoreError> {
        const ACTION: &str = "queue an account notice";
        let accounts = &mut self.state().accounts;
        accounts.require(notice.user, ACTION)?;
        if accounts.notices.contains_key(&notice.id) {
            return Err(StoreError::new(ACTION, "the notice exists already"));
        }
        let record = NoticeRecord { notice: notice.clone(), schedule: Schedule::due_at(notice.at) };
        accounts.notices.insert(notice.id, record);
        Ok(())
    }

    async fn claim_notices(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<NoticeClaim>, StoreError> {
        Ok(self.state().accounts.claim_notices((now, lease), limit))
    }

    async fn settle_notice(
        &self,
        claim: &NoticeClaim,
        again: Option<DateTime<Utc>>,
    ) -> Result<bool, StoreError> {
        Ok(self.state().accounts.settle_notice(claim, again))
    }
}
