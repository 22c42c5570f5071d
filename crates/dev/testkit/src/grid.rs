//! A Selenium Grid on free ports: a hub, and nodes with one Chromium at a time each. It ends with all its
//! browsers when its value is dropped.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::port::free_port;

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time in which the nodes end their browsers.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(100);

/// A running grid.
pub struct SeleniumGrid {
    port: u16,
    processes: Vec<Child>,
    folder: TempDir,
}

impl SeleniumGrid {
    /// Starts a hub with this number of nodes, which end sessions that are idle for some seconds. Returns
    /// once all nodes can be used.
    pub async fn start(nodes: usize, session_timeout_seconds: u32) -> Self {
        let start = move || Self::spawn(nodes, session_timeout_seconds);
        tokio::task::spawn_blocking(start).await.unwrap()
    }

    fn spawn(nodes: usize, session_timeout_seconds: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, publish, subscribe) = (free_port(), free_port(), free_port());
        let events = format!(
            "[events]\npublish = \"tcp://127.0.0.1:{publish}\"\n\
             subscribe = \"tcp://127.0.0.1:{subscribe}\"\n"
        );
        let hub = format!("[server]\nhost = \"127.0.0.1\"\nport = {port}\n{events}bind = true\n");
        let mut grid = Self { port, processes: vec![], folder };
        grid.run("hub", &hub);
        for number in 0..nodes {
            // No sandbox of Chromium's own as root, as in the containers of grids.
            let node = format!(
                "[server]\nhost = \"127.0.0.1\"\nport = {}\n{events}bind = false\n\
                 [node]\nhub = \"http://127.0.0.1:{port}\"\ndetect-drivers = false\n\
                 selenium-manager = false\nmax-sessions = 1\nregister-cycle = 1\n\
                 session-timeout = {session_timeout_seconds}\n\
                 [[node.driver-configuration]]\ndisplay-name = \"chrome\"\n\
                 stereotype = '{{\"browserName\": \"chrome\", \"goog:chromeOptions\": \
                 {{\"binary\": \"/usr/lib/chromium/chromium\", \"args\": [\"--no-sandbox\"]}}}}'\n\
                 webdriver-executable = \"/usr/bin/chromedriver\"\nmax-sessions = 1\n",
                free_port()
            );
            grid.run(&format!("node{number}"), &node);
        }
        grid.wait(START_TIMEOUT, "the nodes are not up", || grid.nodes_up() == nodes);
        grid
    }

    /// Starts a part of the grid with a configuration.
    fn run(&mut self, name: &str, configuration: &str) {
        let role = name.trim_end_matches(char::is_numeric);
        let file = self.folder.path().join(format!("{name}.toml"));
        fs::write(&file, configuration).unwrap();
        let log = fs::File::create(self.log(name)).unwrap();
        let process = Command::new("java")
            // Shorter starts are worth more than fast code here.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-jar"])
            .arg(server())
            .args([role, "--config"])
            .arg(&file)
            // The profiles of browsers are in it.
            .env("TMPDIR", self.folder.path())
            .env("JAVA_TOOL_OPTIONS", format!("-Djava.io.tmpdir={}", self.folder.path().display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn();
        self.processes.push(process.unwrap_or_else(|error| {
            panic!("java must be installed ({error}): run `cargo xtask test`")
        }));
    }

    /// Returns the address of the hub.
    pub fn url(&self) -> String {
        format!("selenium+http://127.0.0.1:{}", self.port)
    }

    /// Returns the number of sessions of all nodes.
    pub fn sessions(&self) -> usize {
        let status = self.status();
        let nodes = status["value"]["nodes"].as_array().cloned().unwrap_or_default();
        let slots = nodes.iter().flat_map(|node| node["slots"].as_array().unwrap());
        slots.filter(|slot| !slot["session"].is_null()).count()
    }

    /// Ends all sessions, as the nodes do when nothing uses them any more.
    pub fn end_sessions(&self) {
        let status = self.status();
        let nodes = status["value"]["nodes"].as_array().cloned().unwrap_or_default();
        for slot in nodes.iter().flat_map(|node| node["slots"].as_array().unwrap()) {
            if let Some(id) = slot["session"]["sessionId"].as_str() {
                self.request("DELETE", &format!("/session/{id}")).unwrap();
            }
        }
    }

    fn nodes_up(&self) -> usize {
        let status = self.status();
        let nodes = status["value"]["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().filter(|node| node["availability"] == "UP").count()
    }

    /// Returns the status; `null` while the hub starts.
    fn status(&self) -> Value {
        self.request("GET", "/status").unwrap_or(Value::Null)
    }

    /// Returns the response of the hub; `None` if it does not respond.
    fn request(&self, method: &str, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: grid\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        serde_json::from_str(response.split_once("\r\n\r\n")?.1).ok()
    }

    fn wait(&self, timeout: Duration, failure: &str, condition: impl Fn() -> bool) {
        let started = Instant::now();
        while !condition() {
            assert!(started.elapsed() < timeout, "{failure}: {}", self.logs());
            thread::sleep(INTERVAL);
        }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    fn logs(&self) -> String {
        let logs = ["hub", "node0", "node1"].map(|name| fs::read_to_string(self.log(name)));
        logs.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for SeleniumGrid {
    fn drop(&mut self) {
        let signal = |signal: &str, target: String| {
            let _ =
                Command::new("kill").args([signal, "--", &target]).stderr(Stdio::null()).status();
        };
        for process in &self.processes {
            signal("-TERM", process.id().to_string());
        }
        let started = Instant::now();
        for process in &mut self.processes {
            while matches!(process.try_wait(), Ok(None)) && started.elapsed() < STOP_TIMEOUT {
                thread::sleep(INTERVAL);
            }
            // Its drivers too.
            signal("-KILL", format!("-{}", process.id()));
            let _ = process.wait();
        }
        for browser in processes_of(self.folder.path()) {
            signal("-KILL", browser);
        }
    }
}

/// Returns the processes whose command lines name a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&folder)
    });
    let names = found.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// Returns the program of all parts of a grid.
fn server() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tools/selenium");
    let server = folder.join("package/lib/selenium-server-4.20.0.jar");
    assert!(server.exists(), "{} is missing: run `cargo xtask test`", server.display());
    server
}
