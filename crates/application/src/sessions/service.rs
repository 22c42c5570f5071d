//! The driving ports of the partner API: what partners create, read, end and erase.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::{
    api_key::Environment,
    id::{ApiKeyId, SessionId, TeamId},
    notification::Channel,
    request::{GivenData, ListQuery, NewSession, PageRequest},
    session::{Event, ProofHash, Session, SkippedTime, Status},
    template::TemplateStatus,
};
use ports::{
    StoreError,
    driving::{
        Caller, Comparison, CreateError, CreatedSession, IdempotentRequest, LookupService,
        MAX_SKIPPED_SESSIONS, NotifyError, PlatformListing, PortableAttestation, RecordingView,
        SessionError, SessionService, SessionView,
    },
    notifier::ResendOutcome,
    places::Country,
    recording::RecordingState,
    session_store::{SessionSummary, TimelineEntry},
    template_store::StoredTemplate,
};

use super::{LookupUseCases, SessionUseCases};
use crate::{advance::AdvanceError, workers::log_error};

/// The sessions that are read at once while open ones are looked for.
const OPEN_SESSIONS_PAGE: i64 = 100;
/// How long a link to a recording is valid.
const RECORDING_LINK_TTL: TimeDelta = TimeDelta::days(7);

#[async_trait]
impl SessionService for SessionUseCases {
    async fn create(
        &self,
        caller: &Caller,
        request: NewSession,
        once: Option<IdempotentRequest>,
    ) -> Result<CreatedSession, CreateError> {
        self.create_session(caller, request, once).await
    }

    async fn read(&self, caller: &Caller, id: SessionId) -> Result<SessionView, SessionError> {
        let found = self.sessions.find(caller.id, id).await?;
        let session = found.ok_or(SessionError::NotFound)?;
        Ok(self.urls.with_urls(session))
    }

    async fn recording(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<RecordingView, SessionError> {
        let found = self.sessions.find(caller.id, id).await?;
        found.ok_or(SessionError::NotFound)?;
        let state = self.recordings.recording(id).await?;
        Ok(match state.ok_or(SessionError::NotFound)? {
            RecordingState::Pending => RecordingView::Pending,
            RecordingState::InProgress => RecordingView::InProgress,
            RecordingState::Kept => {
                RecordingView::Completed(self.vault.link(id, RECORDING_LINK_TTL).await?)
            }
            RecordingState::Failed(why) => RecordingView::Failed(why),
            RecordingState::Erased => RecordingView::Failed("The recording was erased.".into()),
        })
    }

    async fn timeline(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Vec<TimelineEntry>, SessionError> {
        self.sessions.timeline(caller.id, id).await?.ok_or(SessionError::NotFound)
    }

    async fn list(
        &self,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), SessionError> {
        Ok(self.sessions.list(caller.id, query).await?)
    }

    async fn compare(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &GivenData,
    ) -> Result<Comparison, SessionError> {
        self.compare_data(caller, proof, data).await
    }

    async fn attestation(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<PortableAttestation>, SessionError> {
        self.portable(caller, id).await
    }

    async fn terminate(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError> {
        Ok(self.engine.advance_of(caller.id, id, Event::TerminatedByPartner).await?)
    }

    async fn skip_time(&self, caller: &Caller, by: SkippedTime) -> Result<usize, SessionError> {
        if caller.environment == Environment::Production {
            return Err(SessionError::ProductionKey);
        }
        let mut moved = 0;
        for id in self.open_sessions(caller.id).await? {
            match self.engine.advance(id, None, Event::TimeSkipped { by }).await {
                Ok(_) => moved += 1,
                // It ended meanwhile.
                Err(AdvanceError::Rejected(_) | AdvanceError::NotFound) => (),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(moved)
    }

    async fn notify_again(&self, caller: &Caller, id: SessionId) -> Result<(), NotifyError> {
        let found = self.sessions.find(caller.id, id).await?;
        let session = found.ok_or(NotifyError::NotFound)?;
        if session.terms.invitation.is_none() {
            return Err(NotifyError::NoChannel);
        }
        if session.state.is_closed() {
            return Err(NotifyError::Over);
        }
        self.charge_recipient(caller, &session.terms)
            .await
            .map_err(|retry_after| NotifyError::TooSoon { retry_after })?;
        let now = self.engine.clock.now();
        match self.notifications.notify_again(id, now).await? {
            ResendOutcome::Queued => Ok(()),
            ResendOutcome::NoMore => Err(NotifyError::NoMore),
            ResendOutcome::NotBefore(at) => {
                let remaining = (at - now).num_milliseconds();
                Err(NotifyError::TooSoon { retry_after: (remaining + 999) / 1000 })
            }
        }
    }

    async fn erase(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError> {
        self.terminate(caller, id).await?;
        Ok(self.engine.erase(id).await?)
    }
}

impl SessionUseCases {
    /// Returns the open sessions of a key, up to [`MAX_SKIPPED_SESSIONS`]. One whose status changes
    /// meanwhile may be left out, unless it is among the newest.
    async fn open_sessions(&self, owner: ApiKeyId) -> Result<BTreeSet<SessionId>, StoreError> {
        let open = Status::ALL.iter().filter(|status| !status.is_closed());
        let statuses = std::iter::once(None).chain(open.map(|status| Some(*status)));
        let mut found = BTreeSet::new();
        for status in statuses {
            let mut page = PageRequest { limit: OPEN_SESSIONS_PAGE, offset: 0 };
            loop {
                let (sessions, _) = self.sessions.list(owner, ListQuery { status, page }).await?;
                let open = sessions.iter().filter(|session| session.closed_at.is_none());
                found.extend(open.map(|session| session.id));
                let is_last = i64::try_from(sessions.len()).is_ok_and(|read| read < page.limit);
                // Of all statuses together, only the newest page is read.
                if is_last || status.is_none() || found.len() >= MAX_SKIPPED_SESSIONS {
                    break;
                }
                page.offset = page.offset.saturating_add(page.limit);
            }
        }
        Ok(found.into_iter().take(MAX_SKIPPED_SESSIONS).collect())
    }
}

#[async_trait]
impl LookupService for LookupUseCases {
    async fn platforms(
        &self,
        environment: Environment,
    ) -> Result<Vec<PlatformListing>, StoreError> {
        let mut listings = Vec::new();
        for platform in self.catalogue.platforms(environment).await? {
            // A definition that cannot be read back hides no platform.
            let definition = match self.catalogue.definition(platform.id).await {
                Ok(found) => found,
                Err(error) => {
                    log_error(&error, "failed to read the definition of a platform for the lookup");
                    None
                }
            };
            let profile = definition.map(|(_, definition)| definition.profile());
            let health = self.health.health(&platform).await?;
            listings.push(PlatformListing { platform, profile, health });
        }
        Ok(listings)
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    async fn email_templates(&self, team: TeamId) -> Result<Vec<StoredTemplate>, StoreError> {
        let mut all = self.templates.templates(team).await?;
        all.retain(|template| template.status == TemplateStatus::Approved);
        Ok(all)
    }

    fn countries(&self) -> &'static [Country] {
        self.places.countries()
    }

    fn country(&self, code: &str) -> Option<&'static Country> {
        self.places.country(code)
    }
}
