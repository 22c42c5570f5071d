//! Runs of a draft for its author.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{
    api_key::{ApiKey, Environment},
    id::{ApiKeyId, InstanceId, PlatformId, SessionId, TeamId},
    request::NewSession,
    workflow::{Definition, Fixture},
};
use ports::{
    StoreError,
    authoring::{AuthoringBrowsers, AuthoringError, AuthoringRuns, DraftStore, RunPurpose},
    browser::Browser,
    clock::Clock,
    driving::{Caller, SessionService},
    key_store::{KeyStore, TeamStore},
    random::RandomSource,
    workflow_trace::WorkflowTrace,
};
use serde_json::json;
use tokio::sync::{Mutex, watch};

use super::{DraftSession, DraftSessions};
use crate::{
    api_keys::ApiKeyText,
    error_chain,
    live::{AuthorTools, FixtureCapture, SessionHub},
};

/// The time that a run has to end when another one is to begin in a new browser.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The team that sessions of drafts belong to, in each deployment.
const TEAM: TeamId = TeamId::from_u128(0x6176_6f75_6368_8000_8000_0000_0000_0001);
/// Its name, which authors read where applicants read that of a partner.
const TEAM_NAME: &str = "Preview";

/// Returns the record of the key that creates sessions of drafts in an environment.
const fn key_of(environment: Environment) -> ApiKeyId {
    match environment {
        Environment::Development => ApiKeyId::from_u128(0x6176_6f75_6368_8000_8000_0000_0000_0002),
        Environment::Production => ApiKeyId::from_u128(0x6176_6f75_6368_8000_8000_0000_0000_0003),
    }
}

/// Creates runs of drafts.
#[derive(Clone)]
pub struct DraftBrowsers {
    /// Creates sessions with a [`super::DraftCatalogue`].
    pub sessions: Arc<dyn SessionService>,
    pub drafts: Arc<DraftSessions>,
    /// Knows whether sessions begin in this process.
    pub hub: Arc<SessionHub>,
    /// This process, to which the sessions are bound; `None` for one that is alone.
    pub instance: Option<InstanceId>,
    pub store: Arc<dyn DraftStore>,
    pub teams: Arc<dyn TeamStore>,
    pub keys: Arc<dyn KeyStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

impl DraftBrowsers {
    /// Returns the key of sessions of drafts. Nobody knows its text. The first use creates it, with
    /// its team.
    async fn caller(&self, environment: Environment) -> Result<Caller, StoreError> {
        let id = key_of(environment);
        self.store.prepare_platform_of_drafts(environment).await?;
        if let Some(key) = self.keys.key(id).await? {
            return Ok(key);
        }
        let now = self.clock.now();
        if !self.teams.has_team(TEAM).await?
            && let Err(error) = self.teams.add_team(TEAM, TEAM_NAME, now).await
            && !self.teams.has_team(TEAM).await?
        {
            return Err(error);
        }
        let key = ApiKey { id, team: TEAM, environment, expires_at: None, revoked_at: None };
        let hash = ApiKeyText::new(environment, self.random.random_bytes()).hash();
        let added = self.keys.add_key(&key, &hash, TEAM_NAME, now).await;
        // Another process may have added it.
        match self.keys.key(id).await? {
            Some(key) => Ok(key),
            None => added.map(|()| key),
        }
    }
}

impl AuthoringBrowsers for DraftBrowsers {
    fn runs(&self, trace: Arc<dyn WorkflowTrace>, country: &str) -> Arc<dyn AuthoringRuns> {
        let (definitions, reloads) = watch::channel(None);
        let (running, browser) = watch::channel(None);
        let tools = AuthorTools {
            trace,
            capture: Some(FixtureCapture::default()),
            reloads: Some(Mutex::new(reloads)),
            browser: Some(running),
        };
        Arc::new(DraftRuns {
            browsers: self.clone(),
            country: country.to_owned(),
            tools: Arc::new(tools),
            definitions,
            browser,
            session: Mutex::default(),
        })
    }

    fn begins_runs(&self) -> bool {
        self.hub.begins_sessions()
    }
}

/// The runs of one author.
pub struct DraftRuns {
    browsers: DraftBrowsers,
    country: String,
    tools: Arc<AuthorTools>,
    definitions: watch::Sender<Option<Arc<Definition>>>,
    browser: watch::Receiver<Option<Arc<dyn Browser>>>,
    session: Mutex<Option<(Caller, SessionId)>>,
}

fn failed(error: impl std::error::Error + 'static) -> AuthoringError {
    AuthoringError(error_chain(&error))
}

impl DraftRuns {
    /// Ends a session, and waits until its browser has ended as well.
    async fn end(&self, ended: Option<(Caller, SessionId)>) -> Result<(), AuthoringError> {
        let Some((caller, id)) = ended else { return Ok(()) };
        let terminated = self.browsers.sessions.terminate(&caller, id).await;
        self.browsers.drafts.remove(id);
        terminated.map_err(failed)?;
        let mut browser = self.browser.clone();
        let ended = browser.wait_for(Option::is_none);
        // If it does not end, the new run begins all the same.
        let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        Ok(())
    }
}

#[async_trait]
impl AuthoringRuns for DraftRuns {
    async fn open(
        &self,
        definition: &Definition,
        purpose: RunPurpose,
    ) -> Result<String, AuthoringError> {
        // Its session would wait for a browser, and nothing would tell the author why.
        if !self.browsers.begins_runs() {
            let why =
                "this instance is about to stop: save, and open the draft again in the portal";
            return Err(AuthoringError(why.to_owned()));
        }
        let mut session = self.session.lock().await;
        self.end(session.take()).await?;
        if let Some(reloads) = &self.tools.reloads
            // A run that has not ended yet holds it.
            && let Ok(mut reloads) = tokio::time::timeout(END_TIMEOUT, reloads.lock()).await
        {
            reloads.mark_unchanged();
        }
        if let Some(capture) = &self.tools.capture {
            match purpose {
                RunPurpose::Explore => capture.pause(),
                RunPurpose::Capture => capture.resume(),
            }
        }
        let environment = definition.environment;
        let caller = self.browsers.caller(environment).await.map_err(failed)?;
        let body = json!({ "platformId": 1, "location": { "country": self.country } });
        let request = NewSession::read(&body).map_err(failed)?;
        let (platform, studio) = (PlatformId::of_drafts(environment), self.browsers.instance);
        let request = NewSession { platform, studio, ..request };
        let created = self.browsers.sessions.create(&caller, request, None).await;
        let created = created.map_err(failed)?.view;
        let id = created.session.id;
        let definition = Arc::new(definition.clone());
        self.browsers.drafts.add(id, DraftSession { definition, tools: self.tools.clone() });
        *session = Some((caller, id));
        Ok(created.embed_url)
    }

    fn reload(&self, definition: Arc<Definition>) {
        self.definitions.send_replace(Some(definition));
    }

    fn browser(&self) -> Option<Arc<dyn Browser>> {
        self.browser.borrow().clone()
    }

    fn fixture(&self, definition: &Definition) -> Option<Fixture> {
        self.tools.capture.as_ref()?.finish(definition)
    }

    async fn close(&self) {
        let ended = self.session.lock().await.take();
        if let Err(error) = self.end(ended).await {
            tracing::warn!(%error, "failed to end the session of a draft; it expires");
        }
    }
}

#[cfg(test)]
mod tests {
    use ports::{driving::MockSessionService, workflow_trace::MockWorkflowTrace};
    use testkit::sample;

    use super::*;
    use crate::testing::{Counting, World};

    #[tokio::test]
    async fn an_author_is_told_that_no_run_begins_in_a_process_that_is_to_stop() {
        let world = World::new().await;
        let browsers = DraftBrowsers {
            // Nothing is asked of them.
            sessions: Arc::new(MockSessionService::new()),
            drafts: Arc::default(),
            hub: world.engine.hub.clone(),
            instance: Some(InstanceId::from_u128(1)),
            store: world.store.clone(),
            teams: world.store.clone(),
            keys: world.store.clone(),
            clock: world.clock.clone(),
            random: Arc::new(Counting::default()),
        };
        let runs = browsers.runs(Arc::new(MockWorkflowTrace::new()), "US");
        assert!(browsers.begins_runs());
        world.engine.hub.start_draining();
        assert!(!browsers.begins_runs());
        let refused = runs
            .open(&sample::definition("sample", "1.0.0"), RunPurpose::Explore)
            .await
            .unwrap_err();
        assert!(refused.0.starts_with("this instance is about to stop"), "{refused}");
    }
}
