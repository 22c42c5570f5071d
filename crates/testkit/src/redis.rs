//! A Redis server to throw away: free port, nothing on disk, ended with its value.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::port::free_port;

/// A server to throw away.
pub struct RedisServer {
    port: u16,
    process: Option<Child>,
}

impl RedisServer {
    #[must_use]
    pub fn start() -> Self {
        let port = free_port();
        let mut server = Self { port, process: None };
        server.run();
        server
    }

    /// Runs it, empty, where it ran before.
    pub fn run(&mut self) {
        let port = self.port.to_string();
        let process = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .spawn();
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
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
