//! A session of the simulation: the domain's session, and what the simulation knows beside it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    api_key::Environment,
    fairness::Tenant,
    id::{ApiKeyId, BrowserId, PlatformId, SessionId, TeamId},
    notification::{Channel, Invitation},
    request::{AttestationRequest, Contact, Location, MaxAttempts, SessionTerms},
    session::{Progress, Session, State, Version},
    worker_region::WorkerRegion,
};

use crate::{applicant::Plan, instances::InstanceIndex};

/// A session whose applicant has not come yet: small, since most of the sessions that exist at a time
/// are of this kind. The session itself is made of it when it is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnopenedSession {
    /// Counts the sessions.
    pub(crate) number: u64,
    pub(crate) created_at: DateTime<Utc>,
    /// Counts the teams, from the largest one.
    pub(crate) team: u32,
    pub(crate) region: u8,
    pub(crate) is_development: bool,
    pub(crate) is_attested: bool,
    pub(crate) is_invited: bool,
}

impl UnopenedSession {
    pub(crate) fn tenant(&self) -> Tenant {
        let environment =
            if self.is_development { Environment::Development } else { Environment::Production };
        Tenant { team: TeamId::from_u128(u128::from(self.team).saturating_add(1)), environment }
    }

    pub(crate) fn session(&self, expires_in: TimeDelta) -> Session {
        let Tenant { team, environment } = self.tenant();
        let region = WorkerRegion::ALL.get(usize::from(self.region)).copied();
        let attestation = if self.is_attested {
            AttestationRequest::Wanted
        } else {
            AttestationRequest::NotWanted
        };
        let contact = self.is_invited.then(|| Contact {
            name: Some("Ada Applicant".into()),
            email: Some(format!("applicant-{}@mail.example", self.number)),
            phone: None,
            locale: Some("en-US".into()),
            metadata: BTreeMap::new(),
        });
        let invitation = self.is_invited.then_some(Invitation {
            channel: Channel::Email,
            sender: None,
            template: None,
        });
        Session {
            // Spread like random identifiers.
            id: SessionId::from_u128(
                u128::from(self.number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835),
            ),
            owner: ApiKeyId::from(*team.as_uuid()),
            terms: SessionTerms {
                platform: PlatformId(1),
                environment,
                location: Location { country: "US".into(), region: None, city: None },
                worker_region: region.unwrap_or(WorkerRegion::UsCentral),
                attestation,
                attestation_challenge: None,
                purpose: None,
                return_url: None,
                max_attempts: MaxAttempts::default(),
                custom_url: None,
                studio: None,
                receiver: contact,
                receiver_id: None,
                invitation,
                external_reference: Some(format!("application-{}", self.number)),
            },
            state: State::START,
            progress: Progress::default(),
            workflow: None,
            version: Version::FIRST,
            created_at: self.created_at,
            expires_at: self.created_at + expires_in,
            closed_at: None,
            erased_at: None,
        }
    }
}

/// A session that its applicant has opened and that has not ended.
pub(crate) struct LiveSession {
    pub(crate) session: Session,
    pub(crate) unopened: UnopenedSession,
    /// Counts the changes of plan: an event of an earlier plan is not carried out.
    pub(crate) epoch: u32,
    pub(crate) is_present: bool,
    pub(crate) opened_at: DateTime<Utc>,
    pub(crate) has_seen_page: bool,
    /// The instance and its incarnation of the last browser.
    pub(crate) instance: (InstanceIndex, u32),
    pub(crate) browser: BrowserId,
    /// When this browser was first asked for, until a slot is taken.
    pub(crate) waiting_since: Option<DateTime<Utc>>,
    /// Since when it waits by the queue's own account, if it has waited.
    pub(crate) queued_since: Option<DateTime<Utc>>,
    /// When the applicant leaves the page if there is no browser by then.
    pub(crate) patient_until: DateTime<Utc>,
    /// Since when it has a slot.
    pub(crate) slot_since: Option<DateTime<Utc>>,
    /// When its lease was renewed for the last time, apart from the renewals at intervals.
    pub(crate) renewed_at: DateTime<Utc>,
    pub(crate) failed_starts: u32,
    pub(crate) plan: Plan,
    pub(crate) is_sampled: bool,
}
