//! Connections of applicants and observers, and runs of workflows, on an in-memory store and a
//! browser whose page the test sets. Time is paused.

mod attest;
mod fixture;
mod guest;
mod join;
mod observer;
mod recorder;
mod retry;
mod runner;
mod small_workflow;
mod viewer;

use std::{sync::Arc, time::Duration};

use domain::{id::SessionId, session::Session};
use ports::{
    browser::Device,
    driving::{
        ApplicantConnection, ApplicantError, ApplicantService as _, JoinRequest, ServerEvent,
        SessionSnapshot,
    },
    refusals::{RefusalClass, RefusalLog},
};
use testkit::sample::INSTANCE;
use tokio::runtime::Handle;

use super::{Applicants, SessionStarter, hub::LiveSession};
use crate::testing::{FakeBrowser, World};

/// The applicants of one process.
struct Setup {
    world: World,
    applicants: Applicants,
    browser: Arc<FakeBrowser>,
}

impl Setup {
    async fn new() -> Self {
        Self::of(World::new().await)
    }

    fn of(world: World) -> Self {
        let starter = SessionStarter {
            engine: world.engine.clone(),
            random: world.random.clone(),
            node: INSTANCE,
            region: None,
        };
        let applicants = Applicants {
            instances: None,
            regions: None,
            engine: world.engine.clone(),
            starter: Arc::new(starter),
            devices: world.devices(),
            urls: world.urls(),
            catalogue: world.store.clone(),
            keys: world.store.clone(),
            brands: world.store.clone(),
            notifications: world.store.clone(),
            refusals: Arc::new(LogsAll),
            runtime: Handle::current(),
        };
        Self { world, applicants, browser: Arc::default() }
    }

    /// Joins a session with the device that has this secret.
    async fn join(&self, id: SessionId, device: char) -> Arc<dyn ApplicantConnection> {
        self.try_join(id, joining(id, device)).await.unwrap()
    }

    async fn try_join(
        &self,
        id: SessionId,
        joining: JoinRequest,
    ) -> Result<Arc<dyn ApplicantConnection>, ApplicantError> {
        self.applicants.join(id, joining).await
    }

    /// A session whose browser is up, with its first device.
    async fn live(&self) -> (SessionId, Arc<dyn ApplicantConnection>) {
        let id = self.world.session().await;
        let lease = self.world.run(id).await;
        assert_eq!(lease.node, INSTANCE);
        let viewer = self.join(id, 'a').await;
        let browser = self.browser.clone();
        self.live_session(id).state.send_modify(|state| state.browser = Some(browser));
        (id, viewer)
    }

    fn live_session(&self, id: SessionId) -> Arc<LiveSession> {
        self.world.engine.hub.find(id).unwrap()
    }

    async fn read(&self, id: SessionId) -> Session {
        self.world.read(id).await
    }

    /// The events of a session's timeline, each with its detail.
    async fn timeline(&self, id: SessionId) -> Vec<String> {
        use ports::session_store::SessionQueries as _;
        let timeline = self.world.store.timeline(self.world.key.id, id).await.unwrap().unwrap();
        let line = |entry: ports::session_store::TimelineEntry| {
            format!("{} {}", entry.event, entry.detail.unwrap_or_default()).trim().to_owned()
        };
        timeline.into_iter().map(line).collect()
    }
}

/// What the page of a device sends first. Devices differ by one character of their secret.
fn joining(id: SessionId, device: char) -> JoinRequest {
    JoinRequest {
        token: format!("embed-{id}"),
        secret: format!("{}{device}", "s".repeat(42)),
        code: None,
        device: Device::default(),
        language: Some("en".into()),
    }
}

/// The next event of a connection, within a minute.
async fn next(connection: &Arc<dyn ApplicantConnection>) -> Option<ServerEvent> {
    within(60, connection.next(true)).await
}

async fn view(connection: &Arc<dyn ApplicantConnection>) -> SessionSnapshot {
    match next(connection).await {
        Some(ServerEvent::View(view)) => view,
        other => panic!("{other:?}"),
    }
}

/// Asserts that nothing is sent for so many seconds.
async fn nothing_for(seconds: u64, connection: &Arc<dyn ApplicantConnection>) {
    let event = tokio::time::timeout(Duration::from_secs(seconds), connection.next(true)).await;
    assert!(event.is_err(), "{event:?}");
}

async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.unwrap()
}

/// Gives other tasks so many seconds.
async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Logs every refusal.
struct LogsAll;

impl RefusalLog for LogsAll {
    fn may_log(&self, _: RefusalClass) -> bool {
        true
    }
}
