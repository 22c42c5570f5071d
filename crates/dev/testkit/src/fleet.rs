//! A Chromium process of a fleet, reached over its DevTools port. It ends when its value is
//! dropped.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::{Message, connect};

/// The flags with which an operator has to start the browsers of a fleet.
pub const WEBRTC_FLAGS: &[&str] = &[
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
];

/// A Chromium process that several clients share.
pub struct SharedChromium {
    pub address: SocketAddr,
    path: String,
    child: Mutex<Child>,
    _folder: TempDir,
}

impl SharedChromium {
    /// Starts Chromium on a free port.
    pub async fn start(flags: &[&str]) -> Self {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        tokio::task::spawn_blocking(move || Self::spawn(&flags)).await.unwrap()
    }

    fn spawn(flags: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new("/usr/lib/chromium/chromium")
            // Chromium has no sandbox as root; a fleet runs in containers.
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.split_once("ws://")?.1.to_owned())).unwrap();
        // Reads the rest of the output, so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        let (address, path) = url.split_once('/').unwrap();
        Self {
            address: address.parse().unwrap(),
            path: path.to_owned(),
            child: Mutex::new(child),
            _folder: folder,
        }
    }

    /// Returns the URL without the path, which differs at each start.
    pub fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// Returns the path of its DevTools connection.
    pub fn path(&self) -> String {
        format!("/{}", self.path)
    }

    /// Returns the number of browser contexts besides the default one.
    pub fn contexts(&self) -> usize {
        let (mut socket, _) = connect(format!("ws://{}/{}", self.address, self.path)).unwrap();
        let ask = json!({ "id": 1, "method": "Target.getBrowserContexts" });
        socket.send(Message::text(ask.to_string())).unwrap();
        let answer: Value =
            serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
        answer["result"]["browserContextIds"].as_array().unwrap().len()
    }

    /// Kills the process, as `kill -9` does.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Its child processes end with it.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for SharedChromium {
    fn drop(&mut self) {
        self.kill();
    }
}
