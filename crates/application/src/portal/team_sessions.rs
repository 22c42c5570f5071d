//! The sessions of a team.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{Days, NaiveTime};
use domain::{
    account::Permission,
    api_key::Environment,
    fairness::Quotas,
    id::{PlatformId, SessionId},
};
use ports::{
    StoreError,
    catalogue::Catalogue,
    clock::Clock,
    driving::{
        FailingNode, Overview, OverviewRange, PlatformOutcomes, PortableAttestation, PortalError,
        SessionDetails, SessionError, SessionSearch, SessionService, SignedInUser, TeamQuotas,
        TeamSession, TeamSessionList, TeamSessionService,
    },
    key_store::KeyStore,
    session_store::{ActivityPeriod, TeamSessionPage, TeamSessionQueries},
};

use super::{
    AuditTrail, TeamSessionLookup,
    overview::{self, OverviewParts},
};
use crate::browser_turns::BrowserTurns;
use crate::settings::Limits;
use crate::support::support_reference;

/// The sessions that an overview counts, the newest first.
const MAX_SESSIONS_COUNTED: u16 = 20_000;

/// The sessions on one page of a list.
const MAX_SESSIONS_LISTED: u16 = 500;

/// Implements [`TeamSessionService`].
pub struct TeamSessions {
    pub sessions: Arc<dyn TeamSessionQueries>,
    pub keys: Arc<dyn KeyStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub lookup: TeamSessionLookup,
    /// The use cases of the partner API, which a team's own key may use.
    pub partner: Arc<dyn SessionService>,
    /// The sessions that have a browser of this process, or wait for one.
    pub turns: Arc<BrowserTurns>,
    pub limits: Limits,
    pub quotas: Quotas,
    pub audit: AuditTrail,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl TeamSessionService for TeamSessions {
    async fn team_sessions(
        &self,
        user: &SignedInUser,
        search: SessionSearch,
    ) -> Result<TeamSessionList, PortalError> {
        user.require(Permission::View)?;
        let SessionSearch { filter, after, limit } = search;
        let limit = limit.min(MAX_SESSIONS_LISTED);
        let found = self.sessions.team_sessions(user.team, &filter, after, limit).await?;
        let TeamSessionPage { sessions, next } = found;
        let keys = self.keys.keys(user.team).await?;
        let mut platforms = BTreeMap::new();
        let mut rows = vec![];
        for listed in sessions {
            let id = listed.summary.platform;
            let platform = match platforms.get(&id) {
                Some(known) => String::clone(known),
                None => self.platform_name(id).await?,
            };
            platforms.insert(id, platform.clone());
            let key = keys.iter().find(|stored| stored.key.id == listed.owner);
            let key = key.map_or_else(String::new, |stored| stored.label.clone());
            rows.push(TeamSession { listed, platform, key });
        }
        Ok(TeamSessionList { sessions: rows, next })
    }

    async fn platforms(
        &self,
        user: &SignedInUser,
    ) -> Result<Vec<(PlatformId, String)>, PortalError> {
        user.require(Permission::View)?;
        let mut platforms = self.catalogue.platforms(Environment::Production).await?;
        platforms.extend(self.catalogue.platforms(Environment::Development).await?);
        Ok(platforms.into_iter().map(|platform| (platform.id, platform.display_name)).collect())
    }

    async fn overview(
        &self,
        user: &SignedInUser,
        range: OverviewRange,
        environment: Option<Environment>,
    ) -> Result<Overview, PortalError> {
        user.require(Permission::View)?;
        let environment = match environment {
            Some(environment) => environment,
            None => self.main_environment(user).await?,
        };
        let today = self.clock.now().date_naive();
        let first = today - Days::new(u64::from(range.days()) - 1);
        let since = first.and_time(NaiveTime::MIN).and_utc();
        let (team, period) = (user.team, ActivityPeriod { environment, since });
        let sessions = self.sessions.team_activity(team, period, MAX_SESSIONS_COUNTED).await?;
        let statuses = self.sessions.team_statuses(team, period, MAX_SESSIONS_COUNTED).await?;
        let mut nodes = vec![];
        for ((id, node, why), count) in overview::failing_nodes(&sessions) {
            let platform = self.platform_name(id).await?;
            nodes.push(FailingNode { id, platform, node, why, count });
        }
        let mut platforms = vec![];
        for (platform, ended, failed) in overview::platform_outcomes(&sessions) {
            let name = self.platform_name(platform).await?;
            platforms.push(PlatformOutcomes { platform, name, ended, failed });
        }
        let parts = OverviewParts {
            environment,
            funnel: overview::funnel(sessions.len(), &statuses),
            platforms,
            nodes,
            cut: sessions.len() == usize::from(MAX_SESSIONS_COUNTED),
        };
        Ok(overview::overview(&sessions, (first, range.days()), parts))
    }

    async fn quotas(&self, user: &SignedInUser) -> Result<TeamQuotas, PortalError> {
        user.require(Permission::View)?;
        let (running, waiting) = self.turns.of_team(user.team);
        let Limits { requests, creations, team_creations, recipient } = self.limits;
        let browsers = self.quotas;
        Ok(TeamQuotas {
            requests,
            creations,
            team_creations,
            recipient,
            browsers,
            running,
            waiting,
        })
    }

    async fn team_session(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<SessionDetails, PortalError> {
        user.require(Permission::View)?;
        let (session, key) = self.lookup.find(user, id).await?;
        let timeline = self.partner.timeline(&key, id).await.map_err(portal_error)?;
        let recording = match self.partner.recording(&key, id).await {
            Ok(recording) => Some(recording),
            Err(SessionError::NotFound) => None,
            Err(error) => return Err(portal_error(error)),
        };
        let keys = self.keys.keys(user.team).await?;
        let label = keys.into_iter().find(|stored| stored.key.id == key.id);
        let platform = self.platform_name(session.terms.platform).await?;
        let key = label.map_or_else(String::new, |stored| stored.label);
        let support_reference = support_reference(session.id);
        Ok(SessionDetails { session, platform, key, timeline, recording, support_reference })
    }

    async fn team_attestation(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<PortableAttestation, PortalError> {
        user.require(Permission::Edit)?;
        let (_, key) = self.lookup.find(user, id).await?;
        let found = self.partner.attestation(&key, id).await.map_err(portal_error)?;
        let attestation = found.ok_or(PortalError::NotFound("attestation"))?;
        self.audit.record(user, "session.attestation", &id.to_string()).await?;
        Ok(attestation)
    }

    async fn end_session(&self, user: &SignedInUser, id: SessionId) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        let (_, key) = self.lookup.find(user, id).await?;
        self.audit.record(user, "session.end", &id.to_string()).await?;
        self.partner.terminate(&key, id).await.map_err(portal_error)?;
        Ok(())
    }
}

impl TeamSessions {
    /// Returns production if the team has a key for it, otherwise development.
    async fn main_environment(&self, user: &SignedInUser) -> Result<Environment, StoreError> {
        let keys = self.keys.keys(user.team).await?;
        let live = keys.iter().any(|stored| stored.key.environment == Environment::Production);
        Ok(if live { Environment::Production } else { Environment::Development })
    }

    /// Returns the name that applicants know a platform by; empty where the catalogue lost it.
    async fn platform_name(&self, id: PlatformId) -> Result<String, StoreError> {
        let platform = self.catalogue.platform(id).await?;
        Ok(platform.map_or_else(String::new, |platform| platform.display_name))
    }
}

fn portal_error(error: SessionError) -> PortalError {
    match error {
        SessionError::NotFound => PortalError::NotFound("session"),
        SessionError::Busy => {
            PortalError::Invalid("the session is being updated. Try again".into())
        }
        error @ SessionError::ProductionKey => PortalError::Invalid(error.to_string()),
        SessionError::Store(error) => error.into(),
    }
}
