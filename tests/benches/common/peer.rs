//! The baseline, and the viewers of both.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{applicant::Applicant, eventually, free_port, root};
use serde_json::json;

use super::{
    figures::{Cost, cost_of, numbers},
    pages::Pages,
};

pub(crate) const DRAWN: &str = "document.querySelector('canvas')?.dataset.pictures > 0";

/// The baseline: a relay of Chromium's screencast.
pub(crate) struct Peer {
    port: u16,
    folder: tempfile::TempDir,
    process: Child,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
        let process = Command::new("node")
            .arg(root().join("tests/relay/relay.mjs"))
            .arg(port.to_string())
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("node runs");
        Self { port, folder, process }
    }

    pub(crate) fn url(&self, pages: &Pages, page: &str, (width, height): (u32, u32)) -> String {
        let (port, url) = (self.port, pages.url(page));
        format!("http://127.0.0.1:{port}/?url={url}&width={width}&height={height}")
    }

    pub(crate) async fn open(&self, pages: &Pages, page: &str, size: (u32, u32)) -> Applicant {
        let viewer = viewer().await;
        eventually("the relay", Duration::from_secs(10), async || {
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok()
        })
        .await;
        go(&viewer, &self.url(pages, page, size)).await;
        viewer.top_level().until("a frame", DRAWN).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        viewer
    }

    pub(crate) async fn load(&self, pages: &Pages, count: usize, size: (u32, u32)) -> Cost {
        let mut viewers = vec![];
        for _ in 0..count {
            viewers.push(self.open(pages, "type", size).await);
        }
        let cost = cost_of(&viewers, self.folder.path(), self.process.id()).await;
        for viewer in viewers {
            viewer.close().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        cost
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the time from opening the socket to the first frame, by the viewer's clock.
pub(crate) async fn first(viewer: &Applicant) -> f64 {
    viewer.top_level().until("a frame", DRAWN).await;
    numbers(&viewer.evaluate("[first - began]").await)[0]
}

/// Opens a viewer whose sockets record the bytes and the time of each message.
pub(crate) async fn viewer() -> Applicant {
    let viewer = Applicant::visit("about:blank").await;
    let count = "window.received = 0; window.arrived = []; window.WebSocket = class extends WebSocket { \
        constructor(...all) { super(...all); window.began ??= performance.now(); this.addEventListener('message', ({ data }) => { \
        received += data.byteLength ?? data.length; arrived.push(performance.now()); }); } }; \
        new MutationObserver(() => { window.first ??= performance.now(); }) \
        .observe(document, { subtree: true, attributeFilter: ['data-pictures'] });";
    viewer.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": count })).await;
    viewer
}

pub(crate) async fn go(viewer: &Applicant, url: &str) {
    viewer.devtools("Page.navigate", json!({ "url": url })).await;
}
