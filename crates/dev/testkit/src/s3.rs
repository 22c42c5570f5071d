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
    process: Child,
}

impl S3Server {
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let port = free_port();
        let process = Command::new(program())
            .args(["--access-key", KEY, "--secret-key", SECRET, "--host", "127.0.0.1"])
            .args(["--port", &port.to_string()])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = process.unwrap_or_else(|error| {
            panic!("s3s-fs must be installed ({error}): run `cargo xtask test`")
        });
        let ends = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < ends, "the S3 server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { port, folder, process }
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
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the path of the server that `cargo xtask test` built, or of an installed one.
fn program() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tools/bin/s3s-fs");
    if own.exists() { own } else { "s3s-fs".into() }
}
