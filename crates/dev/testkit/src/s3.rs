//! A temporary S3 server that verifies every signature, with its own folder and a free port.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::port::free_port;

const BUCKET: &str = "recordings";
const KEY: &str = "AKIATESTTESTTESTTEST";
const SECRET: &str = "a-secret-of-the-test-server";

/// A temporary S3 server with one empty bucket.
pub struct S3Server {
    port: u16,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl S3Server {
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut server = Self { port: free_port(), folder, process: None };
        server.run();
        server
    }

    /// Starts the server again, with the same objects and on the same port.
    pub fn run(&mut self) {
        let process = Command::new(program())
            .args(["--access-key", KEY, "--secret-key", SECRET, "--host", "127.0.0.1"])
            .args(["--port", &self.port.to_string()])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.unwrap_or_else(|error| {
            panic!("s3s-fs must be installed ({error}): run `cargo xtask test`")
        }));
        let ends = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < ends, "the S3 server does not start");
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

    /// Returns the `s3://` URL of a prefix in the bucket.
    #[must_use]
    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/some/prefix")
    }

    /// Returns the usual environment variables for this server.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ACCESS_KEY_ID", KEY.into()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".into()),
        ]
    }

    /// Returns the folder in which the bucket's objects are files.
    #[must_use]
    pub fn bucket(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the path of the server that `cargo xtask test` built, or of an installed one.
fn program() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tools/bin/s3s-fs");
    if own.exists() { own } else { "s3s-fs".into() }
}
