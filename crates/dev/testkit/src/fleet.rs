//! A Chromium that somebody runs for all who know its port; ended with its value.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::{Message, connect};

/// What an operator has to start the browsers of a fleet with.
pub const CLOSED: &[&str] = &[
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
];

/// A Chromium that many share.
pub struct Shared {
    pub address: SocketAddr,
    path: String,
    child: Mutex<Child>,
    _folder: TempDir,
}

impl Shared {
    /// Starts one on a free port.
    pub async fn start(flags: &'static [&'static str]) -> Self {
        tokio::task::spawn_blocking(|| Self::spawn(flags)).await.unwrap()
    }

    fn spawn(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new("/usr/lib/chromium/chromium")
            // As root it has no sandbox of its own; a fleet has containers.
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.split_once("ws://")?.1.to_owned())).unwrap();
        // Whatever else it has to say.
        std::thread::spawn(move || lines.for_each(drop));
        let (address, path) = url.split_once('/').unwrap();
        Self {
            address: address.parse().unwrap(),
            path: path.to_owned(),
            child: Mutex::new(child),
            _folder: folder,
        }
    }

    /// Without the path, which is another one at each start.
    pub fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// How many contexts it has beside its own.
    pub fn contexts(&self) -> usize {
        let (mut socket, _) = connect(format!("ws://{}/{}", self.address, self.path)).unwrap();
        let ask = json!({ "id": 1, "method": "Target.getBrowserContexts" });
        socket.send(Message::text(ask.to_string())).unwrap();
        let answer: Value =
            serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
        answer["result"]["browserContextIds"].as_array().unwrap().len()
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Its other processes end when it is gone.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.kill();
    }
}
