//! A Redis server to throw away: free port, no data on disk, ended with its value.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{certificates::Certified, port::free_port};

/// A server to throw away.
pub struct RedisServer {
    port: u16,
    /// Its certificate and key, where it speaks TLS alone.
    files: Option<TempDir>,
    process: Option<Child>,
}

impl RedisServer {
    #[must_use]
    pub fn start() -> Self {
        Self::started(None)
    }

    /// One that speaks TLS alone, and asks clients for no certificate.
    #[must_use]
    pub fn start_tls(certified: &Certified) -> Self {
        let files = tempfile::tempdir().unwrap();
        fs::write(files.path().join("certificate.pem"), &certified.certificate).unwrap();
        fs::write(files.path().join("key.pem"), &certified.key).unwrap();
        Self::started(Some(files))
    }

    fn started(files: Option<TempDir>) -> Self {
        let mut server = Self { port: free_port(), files, process: None };
        server.run();
        server
    }

    /// Runs it, empty, where it ran before.
    pub fn run(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        match &self.files {
            None => command.args(["--port", &port]),
            Some(files) => command
                .args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"])
                .arg("--tls-cert-file")
                .arg(files.path().join("certificate.pem"))
                .arg("--tls-key-file")
                .arg(files.path().join("key.pem")),
        };
        let process = command.current_dir(std::env::temp_dir()).stdout(Stdio::null()).spawn();
        self.process = Some(process.unwrap_or_else(|error| {
            panic!("redis-server must be installed ({error}): run `cargo xtask test`")
        }));
        let ends = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < ends, "Redis does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it at once, as `kill -9` does.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.files.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// The number of its process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.as_ref().expect("a process").id()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
