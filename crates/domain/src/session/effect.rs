//! The effects of a transition. They are saved in the transaction that saves the transition: a
//! [`Record`] is complete with it, a [`Job`] is carried out afterwards.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::Lease;
use crate::id::InstanceId;

/// Time within which the last recorded segments of a session are stored after it ends.
const RECORDING_FLUSH_DELAY: TimeDelta = TimeDelta::seconds(3);
/// How long after a failed start of a browser the next one follows. It is less than the time after which the
/// session would lose its place among those that wait ([`crate::fairness::WAITING_TTL`]).
pub const START_RETRY_DELAY: TimeDelta = TimeDelta::seconds(3);
/// Attempts after which the start of a browser is given up. A session that waits for its turn needs one every
/// three to six seconds for up to an hour.
const MAX_START_ATTEMPTS: i32 = 4_000;

/// The effects of a transition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    pub jobs: Vec<Job>,
    pub records: Vec<Record>,
}

impl Effects {
    #[must_use]
    pub(super) fn job(job: Job) -> Self {
        Self { jobs: vec![job], records: vec![] }
    }
}

/// An entry of the outbox. It is carried out at least once, due from the time of its transition, and
/// in no fixed order relative to others. Therefore each job names its object, and releasing a
/// browser takes precedence over starting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Job {
    StartBrowser {
        lease: Lease,
    },
    ReleaseBrowser {
        lease: Lease,
    },
    /// Deletes everything that was recorded.
    ForgetRecording,
}

impl Job {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StartBrowser { .. } => "start_browser",
            Self::ReleaseBrowser { .. } => "release_browser",
            Self::ForgetRecording => "forget_recording",
        }
    }

    /// Returns the delay after a failed attempt, counted from 1. `None` if the job is given up: after
    /// 20 attempts, about three minutes; the deletion of a recording after 200, about eight days. The start of
    /// a browser ends before it is given up: when the session has waited for too long, or when its lease has
    /// not been renewed.
    #[must_use]
    pub fn retry_delay(&self, attempt: i32) -> Option<TimeDelta> {
        let attempt = attempt.max(1);
        match self {
            // The number says nothing about failures: each look at the queue is an attempt.
            Self::StartBrowser { .. } => {
                (attempt < MAX_START_ATTEMPTS).then_some(START_RETRY_DELAY)
            }
            Self::ReleaseBrowser { .. } => {
                (attempt < 20).then(|| TimeDelta::seconds(attempt.into()))
            }
            // Object storage may be unavailable for days, and the data has to be deleted.
            Self::ForgetRecording => (attempt < 200)
                .then(|| TimeDelta::seconds(1 << (attempt - 1).min(12)).min(TimeDelta::hours(1))),
        }
    }

    /// Returns the instance that has to carry this job out; `None` if any instance can.
    #[must_use]
    pub const fn node(&self) -> Option<InstanceId> {
        match self {
            Self::StartBrowser { lease } | Self::ReleaseBrowser { lease } => Some(lease.node),
            Self::ForgetRecording => None,
        }
    }
}

/// Rows that the store writes, changes or deletes together with the transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// One delivery for each active webhook of the team that is for the session's key.
    NotifyPartner,
    /// The notification with which the applicant is sent the link.
    SendLink,
    /// The erased data is removed from the bodies of the session's deliveries, and what else was
    /// copied from the session is deleted.
    EraseCopies,
    /// The recording that is to be assembled from its segments.
    KeepRecording,
}

impl Record {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotifyPartner => "notify_partner",
            Self::SendLink => "send_link",
            Self::EraseCopies => "erase_copies",
            Self::KeepRecording => "keep_recording",
        }
    }

    /// Returns when a worker may first process the rows of a transition at `at`.
    #[must_use]
    pub fn due(self, at: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::NotifyPartner | Self::SendLink | Self::EraseCopies => at,
            Self::KeepRecording => at + RECORDING_FLUSH_DELAY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BrowserId;

    const LEASE: Lease =
        Lease { browser: BrowserId::from_u128(1), node: InstanceId::from_u128(2), region: None };

    #[test]
    fn a_start_is_retried_soon_however_long_its_session_has_waited() {
        let start = Job::StartBrowser { lease: LEASE };
        for attempt in [i32::MIN, 1, 19, 20, 1_200] {
            assert_eq!(start.retry_delay(attempt), Some(START_RETRY_DELAY), "{attempt}");
        }
        assert_eq!(start.retry_delay(i32::MAX), None);
    }

    #[test]
    fn a_recording_is_deleted_even_after_days_without_its_storage() {
        let release = Job::ReleaseBrowser { lease: LEASE };
        let total = |job: &Job| {
            let delays = (1..).map_while(|attempt| job.retry_delay(attempt));
            delays.fold((0, TimeDelta::zero()), |(count, sum), delay| (count + 1, sum + delay))
        };
        assert_eq!(total(&release), (19, TimeDelta::seconds(190)));
        let (count, time) = total(&Job::ForgetRecording);
        assert_eq!(count, 199);
        assert!(time > TimeDelta::days(7) && time < TimeDelta::days(9), "{time}");
        assert_eq!(Job::ForgetRecording.retry_delay(i32::MIN), Some(TimeDelta::seconds(1)));
        assert_eq!(Job::ForgetRecording.retry_delay(i32::MAX), None);
    }
}
