//! A browser before anybody needs it: all is done that can be done without knowing for whom.

use std::{sync::Arc, time::Duration};

use ports::browser::BrowserSpec;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    LOAD_PATIENCE, RemoteBrowser, events::listen, inputs::Inputs, pages::Pages, setup::Agent,
};
use crate::{
    client::{CallError, Event},
    vessel::{Vessel, WayOut},
};

/// How long one that waits may take to say that it is well.
const PULSE: Duration = Duration::from_secs(2);

/// A browser whose first page can be driven, and that is for no session yet.
pub(crate) struct WaitingBrowser {
    vessel: Vessel,
    pages: Arc<Pages>,
}

impl WaitingBrowser {
    /// Takes a fresh browser over, which says to be `agent`; answers once its first page can be
    /// driven.
    pub(crate) async fn adopt(
        vessel: Vessel,
        events: mpsc::Receiver<Event>,
        agent: &str,
    ) -> Result<Self, CallError> {
        let client = vessel.client().clone();
        let context = vessel.context().map(str::to_owned);
        let pages = Arc::new(Pages::new(client.clone(), context.clone(), Agent::new(agent)));
        tokio::spawn(listen(pages.clone(), events));
        let ours = |mut params: Value| {
            if let (Some(context), Some(params)) = (&context, params.as_object_mut()) {
                params.insert("browserContextId".to_owned(), context.as_str().into());
            }
            params
        };
        let downloads = ours(json!({ "behavior": "deny", "eventsEnabled": true }));
        // Granting none refuses all, without a question that nobody sees.
        let permissions = ours(json!({ "permissions": [] }));
        let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        tokio::try_join!(
            client.call(None, "Browser.setDownloadBehavior", downloads),
            client.call(None, "Browser.grantPermissions", permissions),
            client.call(None, "Target.setAutoAttach", attach),
        )?;
        if context.is_some() {
            let page = ours(json!({ "url": "about:blank" }));
            client.call(None, "Target.createTarget", page).await?;
        }
        let mut ready = pages.ready.subscribe();
        let first = tokio::time::timeout(LOAD_PATIENCE, ready.wait_for(|ready| *ready)).await;
        match first {
            Ok(Ok(_)) => Ok(Self { vessel, pages: pages.clone() }),
            Ok(Err(_)) => Err(CallError::Gone),
            Err(_) => Err(CallError::TimedOut("the first page".into())),
        }
    }

    /// Gives it to a session.
    pub(crate) fn assign(self, spec: BrowserSpec, way_out: WayOut) -> RemoteBrowser {
        self.pages.assign(spec);
        let inputs = Inputs::new(self.pages.client.clone());
        RemoteBrowser { vessel: self.vessel, pages: self.pages, inputs, _way_out: way_out }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.pages.client.is_closed()
    }

    /// Whether it is still well; one that does not answer soon is not.
    pub(crate) async fn answers(&self) -> bool {
        let answer = self.pages.client.call(None, "Browser.getVersion", json!({}));
        matches!(tokio::time::timeout(PULSE, answer).await, Ok(Ok(_)))
    }

    pub(crate) async fn end(&self) {
        self.vessel.end().await;
    }
}
