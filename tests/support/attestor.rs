//! An attestor in a process of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tokio::net::TcpStream;

use crate::{
    eventually, free_port,
    service::{Deployment, tool},
};

/// A running attestor, killed when it is dropped.
pub struct AttestorProcess {
    pub process: Child,
    /// What it writes to its standard error.
    pub log: PathBuf,
    config: PathBuf,
    address: String,
}

/// Starts an attestor for these platform definitions, whose hosts the sandbox's server stands for,
/// and starts the deployment with it.
pub async fn with_attestor(
    deployment: &mut Deployment,
    definitions: &[PathBuf],
) -> AttestorProcess {
    // The sandbox's certificate is created at the first start.
    let sandbox = format!("127.0.0.1:{}", free_port());
    deployment.set("AVOUCH_SANDBOX_LISTEN", &sandbox);
    deployment.run().await;
    deployment.kill();
    let folder = deployment.folder.path().join("witness");
    fs::create_dir_all(folder.join("descriptors")).expect("a folder");
    let address = format!("127.0.0.1:{}", free_port());
    let root = deployment.data().join("sandbox/root.pem");
    let settings = format!(
        "listen = \"{address}\"\nname = \"AttestorProcess Ltd\"\nkeys = \"keys\"\nlog = \"log\"\n\
         descriptors = \"descriptors\"\nroots = {:?}\n\n[hosts]\n\"sandbox.localhost\" = \"{sandbox}\"\n",
        root.display().to_string()
    );
    let config = folder.join("attestor.toml");
    fs::write(&config, settings).expect("a file");
    for (at, definition) in definitions.iter().enumerate() {
        let mut command = deployment.command();
        let described = command.args(["workflow", "descriptor"]).arg(definition).output();
        let descriptor = described.expect("avouch runs").stdout;
        fs::write(folder.join(format!("descriptors/{at}.json")), descriptor).expect("a file");
    }
    let attestor = |argument: &str| {
        let mut command = Command::new(tool("avouch-attestor"));
        let output = command.arg("--config").arg(&config).arg(argument).output();
        let output = output.expect("avouch-attestor runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    attestor("new-key");
    let issuers: Value = serde_json::from_slice(&attestor("issuers")).expect("JSON");
    let key = issuers["issuers"][0]["publicKey"].as_str().expect("a key");
    deployment.set("AVOUCH_ATTESTOR_KEY", key);
    deployment.set("AVOUCH_ATTESTOR_URL", format!("tls://{address}"));
    let log = folder.join("stderr");
    let process = started(&config, &log);
    let attestor = AttestorProcess { process, log, config, address };
    attestor.serving().await;
    deployment.run().await;
    attestor
}

impl AttestorProcess {
    /// Kills the process, as `kill -9` does.
    pub fn kill(&mut self) {
        self.process.kill().expect("the process can be killed");
        self.process.wait().expect("the process ended");
    }

    /// Starts a process again after [`Self::kill`], at the same address.
    pub async fn restart(&mut self) {
        self.process = started(&self.config, &self.log);
        self.serving().await;
    }

    /// Suspends the process (SIGSTOP): connections are accepted, and nothing is answered.
    pub fn suspend(&self) {
        let id = self.process.id().to_string();
        let suspended = Command::new("kill").args(["-STOP", &id]).status().expect("kill runs");
        assert!(suspended.success(), "SIGSTOP was sent");
    }

    async fn serving(&self) {
        eventually("the attestor to serve", Duration::from_secs(60), async || {
            TcpStream::connect(&self.address).await.ok().map(drop)
        })
        .await;
    }
}

impl Drop for AttestorProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn started(config: &Path, log: &Path) -> Child {
    let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
    Command::new(tool("avouch-attestor"))
        .arg("--config")
        .arg(config)
        .arg("--open-to-everyone")
        .env("AVOUCH_LOG", "trace")
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("avouch-attestor serves")
}
