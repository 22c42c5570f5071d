//! A temporary Redis server on a free port, without data on disk. It ends when its value is
//! dropped.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{certificates::Certified, port::free_port};

/// A temporary Redis server.
pub struct RedisServer {
    port: u16,
    /// The certificate and the key, if the server accepts only TLS.
    files: Option<TempDir>,
    process: Option<Child>,
}

impl RedisServer {
    #[must_use]
    pub fn start() -> Self {
        Self::started(None)
    }

    /// Starts a server that accepts only TLS, without client certificates.
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

    /// Starts the server again, empty, on the same port.
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
        let ends = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < ends, "Redis does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the process, as `kill -9` does.
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

    /// Returns the process identifier.
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
