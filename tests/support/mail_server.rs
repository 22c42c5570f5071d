//! A mail server that tests start and stop.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

use crate::{eventually, free_port, root};

/// A server with a folder of received mails, which outlasts its process.
pub struct Server {
    folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Server {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = names.self_signed(&key).unwrap();
        fs::write(folder.path().join("certificate.pem"), certificate.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        fs::create_dir(folder.path().join("inbox")).unwrap();
        let mut server = Self { folder, port: free_port(), process: None };
        server.run().await;
        server
    }

    pub async fn run(&mut self) {
        let python = root().join("target/tools/mail-python/bin/python");
        assert!(
            python.exists(),
            "install tests/mail/requirements.txt into target/tools/mail-python"
        );
        let file = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(python);
        command.arg(root().join("tests/mail/server.py")).arg(self.port.to_string());
        command.args([file("inbox"), file("certificate.pem"), file("key.pem")]);
        self.process = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        eventually("the mail server", Duration::from_secs(60), async || {
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok()
        })
        .await;
    }

    /// Kills the process, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn url(&self) -> String {
        format!("smtp://avouch:secret%20p%40ss@localhost:{}", self.port)
    }

    /// The file with the root of its certificate.
    pub fn roots(&self) -> String {
        self.folder.path().join("certificate.pem").display().to_string()
    }

    /// Returns all mails that were received.
    pub fn mails(&self) -> Vec<Value> {
        let files = fs::read_dir(self.folder.path().join("inbox")).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let whole = files.filter(|file| file.extension().is_some_and(|kind| kind == "json"));
        whole.map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
