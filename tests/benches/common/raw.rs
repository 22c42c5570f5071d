//! A Chromium driven directly: the time from a key press to the frame that Chromium reports.

use std::time::{Duration, Instant};

use acceptance::service::binary;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chromium::{
    Chromium, DevToolsClient, DevToolsEvent, Installation, LaunchOptions, Launched, Sandbox,
};
use serde_json::json;
use tokio::sync::mpsc;

pub(crate) struct Raw {
    client: DevToolsClient,
    session: String,
    events: tokio::sync::Mutex<mpsc::Receiver<DevToolsEvent>>,
    _chromium: Chromium,
    _folder: tempfile::TempDir,
}

impl Raw {
    /// Shows a page, in the sandbox of the service's browsers or without one.
    pub(crate) async fn start(html: &str, (width, height): (u32, u32), jailed: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = LaunchOptions {
            executable: "chromium".into(),
            folder: folder.path().join("b"),
            flags: vec![],
            sandbox: jailed.then(jail),
            slot: 0,
        };
        let Launched { chromium, mut events, .. } =
            Chromium::launch(&options).await.expect("a Chromium");
        let client = chromium.client.clone();
        let targets = client.call(None, "Target.getTargets", json!({})).await.expect("targets");
        let all = targets["targetInfos"].as_array().cloned().unwrap_or_default();
        let page = all.iter().find(|target| target["type"] == "page").expect("a page");
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = client.call(None, "Target.attachToTarget", attach).await.expect("a session");
        let session = attached["sessionId"].as_str().expect("its name").to_owned();
        let tell = async |method, params| {
            client.call(Some(&session), method, params).await.expect("obeyed")
        };
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        tell("Emulation.setDeviceMetricsOverride", size).await;
        tell("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        tell("Page.startScreencast", json!({ "format": "jpeg", "quality": 75 })).await;
        // There is no network in the sandbox from which the page could be fetched.
        let url = format!("data:text/html;base64,{}", STANDARD.encode(html));
        tell("Page.navigate", json!({ "url": url })).await;
        picture(&client, &session, &mut events).await;
        Self { client, session, events: events.into(), _chromium: chromium, _folder: folder }
    }

    pub(crate) async fn keys(&self, count: usize) -> Vec<f64> {
        let mut events = self.events.lock().await;
        let mut times = Vec::new();
        for _ in 0..count {
            // Frames of the previous key are discarded.
            let quiet = Duration::from_millis(130);
            while tokio::time::timeout(quiet, picture(&self.client, &self.session, &mut events))
                .await
                .is_ok()
            {}
            let began = Instant::now();
            let key = json!({ "type": "keyDown", "key": "a", "code": "KeyA", "text": "a", "windowsVirtualKeyCode": 65 });
            self.client.send_no_reply(Some(&self.session), "Input.dispatchKeyEvent", key);
            picture(&self.client, &self.session, &mut events).await;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times
    }
}

fn jail() -> Sandbox {
    let arguments = vec!["jail".to_owned()];
    let installation = Installation::find("chromium".as_ref()).expect("a Chromium");
    Sandbox { helper: binary(), arguments, installation, policies: None, cores: 3 }
}

/// Waits for the next frame and acknowledges it.
async fn picture(
    client: &DevToolsClient,
    session: &str,
    events: &mut mpsc::Receiver<DevToolsEvent>,
) {
    while let Some(event) = events.recv().await {
        if event.method == "Page.screencastFrame" {
            let frame = json!({ "sessionId": event.params()["sessionId"] });
            client.send_no_reply(Some(session), "Page.screencastFrameAck", frame);
            return;
        }
    }
}
