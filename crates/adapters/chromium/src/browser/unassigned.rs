//! A browser before its assignment to a session: everything is set up that does not depend on the
//! session.

use std::{sync::Arc, time::Duration};

use ports::browser::BrowserSpec;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    LOAD_TIMEOUT, RemoteBrowser, events::handle_events, input_queue::InputQueue, pages::Pages,
    setup::UserAgent,
};
use crate::{
    backend::{Backend, EgressGuard},
    client::{DevToolsError, DevToolsEvent},
};

/// The time within which a warm browser must reply to a health check.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// A browser whose first page can be driven, and that is not assigned to a session yet.
pub(crate) struct UnassignedBrowser {
    backend: Backend,
    pages: Arc<Pages>,
}

impl UnassignedBrowser {
    /// Sets up a new browser with this user agent. Returns once its first page can be driven; a browser
    /// that cannot be set up within `bound` is ended.
    pub(crate) async fn initialize(
        backend: Backend,
        events: mpsc::Receiver<DevToolsEvent>,
        user_agent: &str,
        bound: Duration,
    ) -> Result<Self, DevToolsError> {
        let client = backend.client().clone();
        let context = backend.context().map(str::to_owned);
        let pages = Arc::new(Pages::new(client, context, UserAgent::new(user_agent)));
        tokio::spawn(handle_events(pages.clone(), events));
        let set_up = tokio::time::timeout(bound, set_up(&pages, backend.context())).await;
        let set_up = set_up
            .unwrap_or_else(|_| Err(DevToolsError::TimedOut("the commands of its start".into())));
        if let Err(error) = set_up {
            backend.end().await;
            return Err(error);
        }
        Ok(Self { backend, pages })
    }

    /// Assigns the browser to a session.
    pub(crate) fn assign(self, spec: BrowserSpec, egress: EgressGuard) -> RemoteBrowser {
        self.pages.assign(spec);
        let input_queue = InputQueue::new(self.pages.client.clone(), self.pages.look_lock.clone());
        RemoteBrowser { backend: self.backend, pages: self.pages, input_queue, _egress: egress }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pages.client.is_closed()
    }

    /// Whether it runs on a browser host that drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.backend.is_draining()
    }

    /// Whether the browser replies to a command within [`HEALTH_CHECK_TIMEOUT`].
    pub(crate) async fn is_responsive(&self) -> bool {
        let reply = self.pages.client.call(None, "Browser.getVersion", json!({}));
        matches!(tokio::time::timeout(HEALTH_CHECK_TIMEOUT, reply).await, Ok(Ok(_)))
    }

    pub(crate) async fn end(&self) {
        self.backend.end().await;
    }
}

/// Sends the commands of the start, and waits for the first page.
async fn set_up(pages: &Pages, context: Option<&str>) -> Result<(), DevToolsError> {
    let client = &pages.client;
    let in_context = |mut params: Value| {
        if let (Some(context), Some(params)) = (context, params.as_object_mut()) {
            params.insert("browserContextId".to_owned(), context.into());
        }
        params
    };
    let downloads = in_context(json!({ "behavior": "deny", "eventsEnabled": true }));
    // An empty list of grants denies all permissions without a prompt, which no one would see.
    let permissions = in_context(json!({ "permissions": [] }));
    let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
    tokio::try_join!(
        client.call(None, "Browser.setDownloadBehavior", downloads),
        client.call(None, "Browser.grantPermissions", permissions),
        client.call(None, "Target.setAutoAttach", attach),
    )?;
    if context.is_some() {
        let page = in_context(json!({ "url": "about:blank" }));
        client.call(None, "Target.createTarget", page).await?;
    }
    let mut ready = pages.ready.subscribe();
    let first = tokio::time::timeout(LOAD_TIMEOUT, ready.wait_for(|ready| *ready)).await;
    match first {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(DevToolsError::Closed),
        Err(_) => Err(DevToolsError::TimedOut("the first page".into())),
    }
}
