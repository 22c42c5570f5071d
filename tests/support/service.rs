//! The service as a process, with a demo partner.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use hyper::Method;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    database::{Database, Kind},
    eventually, free_port,
    partner::Partner,
    second_process::SecondProcess,
};

/// A deployment: a folder, a database, a partner with key and webhook, and the process while it
/// runs. Dropping it ends everything.
pub struct Deployment {
    pub folder: TempDir,
    pub database: Database,
    pub partner: Partner,
    pub api_key: String,
    pub webhook_secret: String,
    /// The URL of the demo partner.
    pub demo: String,
    /// The team of key and webhook.
    pub team: String,
    address: String,
    settings: Vec<(&'static str, String)>,
    /// The program of processes that start from now on.
    pub program: PathBuf,
    process: Option<Child>,
}

impl Deployment {
    /// Prepares a deployment and starts it.
    pub async fn start(kind: Kind) -> Self {
        let mut deployment = Self::prepare(kind).await;
        deployment.run().await;
        deployment
    }

    /// Prepares a deployment; only the demo partner runs yet.
    pub async fn prepare(kind: Kind) -> Self {
        Self::prepare_with(kind, binary()).await
    }

    /// Prepares a deployment with another program than that under test.
    pub async fn prepare_with(kind: Kind, program: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::new(kind, &folder).await;
        Self::with(folder, database, program)
    }

    /// Prepares a deployment on an existing database.
    pub fn on(database: Database) -> Self {
        Self::with(tempfile::tempdir().expect("a folder"), database, binary())
    }

    fn with(folder: TempDir, database: Database, program: PathBuf) -> Self {
        let (address, demo_port) = (format!("127.0.0.1:{}", free_port()), free_port());
        let settings = vec![
            ("AVOUCH_LISTEN", address.clone()),
            ("AVOUCH_PUBLIC_URL", format!("http://{address}")),
            ("AVOUCH_DATA_DIR", folder.path().join("data").display().to_string()),
            ("AVOUCH_DATABASE_URL", database.url.clone()),
            ("AVOUCH_EGRESS_ALLOW", format!("127.0.0.1:{demo_port}")),
            ("AVOUCH_WEBHOOK_BACKOFF", "1x2".to_owned()),
            ("AVOUCH_BROWSERS", "32".to_owned()),
            // Tests count browsers; a warm one would be one too many.
            ("AVOUCH_BROWSERS_WARM", "0".to_owned()),
            ("AVOUCH_LOG", "debug".to_owned()),
            ("AVOUCH_RATE_LIMIT", "off".to_owned()),
            ("AVOUCH_CREATE_LIMIT", "off".to_owned()),
            // No load balancer has to notice that the process ends.
            ("AVOUCH_DRAIN_MIN_SECONDS", "0".to_owned()),
            ("TMPDIR", folder.path().join("t").display().to_string()),
        ];
        fs::create_dir(folder.path().join("t")).expect("a folder");
        let mut deployment = Self {
            folder,
            database,
            partner: Partner::new(&format!("http://{address}"), None),
            api_key: String::new(),
            webhook_secret: String::new(),
            // Another site than the service's own address, as a partner's is.
            demo: format!("http://localhost:{demo_port}"),
            team: String::new(),
            address,
            settings,
            program,
            process: None,
        };
        deployment.seed(demo_port);
        deployment
    }

    /// Creates team, key and webhook, and starts the demo partner.
    fn seed(&mut self, demo_port: u16) {
        self.team = text(&self.admin(&["create-team", "Lender"]), "teamId");
        let team = self.team.clone();
        let key = self.admin(&["create-key", "--team", &team, "--environment", "development"]);
        self.api_key = text(&key, "apiKey");
        let url = format!("http://127.0.0.1:{demo_port}/webhook");
        let webhook = self.admin(&["create-webhook", "--team", &team, "--url", &url]);
        self.webhook_secret = text(&webhook, "secret");
        self.partner = self.partner.with_key(Some(&self.api_key));
        let server = demo::serve(demo::Options {
            listen: ([127, 0, 0, 1], demo_port).into(),
            service: format!("http://{}", self.address),
            api_key: self.api_key.clone(),
            webhook_secret: self.webhook_secret.clone(),
        });
        tokio::spawn(server.expect("the demo partner"));
    }

    /// Sets a variable for the processes that start from now on.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.settings.retain(|(own, _)| *own != name);
        self.settings.push((name, value.into()));
    }

    /// Starts a second process of the same deployment, which ends with the returned value.
    pub async fn second_process(&self) -> SecondProcess {
        self.second_process_at(&format!("127.0.0.1:{}", free_port()), &[]).await
    }

    /// Starts a second process at an address, with further settings.
    pub async fn second_process_at(
        &self,
        address: &str,
        settings: &[(&str, &str)],
    ) -> SecondProcess {
        let log = fs::File::create(self.folder.path().join("log-another"));
        let mut command = self.command();
        command.env("AVOUCH_LISTEN", address).envs(settings.iter().copied()).arg("serve");
        let process = command.stdout(Stdio::null()).stderr(log.expect("a log")).spawn();
        let partner = Partner::new(&format!("http://{address}"), Some(&self.api_key));
        let second = SecondProcess::new(partner, process.expect("avouch serves"));
        serving(address, &second.partner).await;
        second
    }

    /// Returns the command that starts a process of this deployment at an address.
    pub fn serving_at(&self, address: &str) -> Command {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log());
        let mut command = self.command();
        command.env("AVOUCH_LISTEN", address).arg("serve");
        command.stdout(Stdio::null()).stderr(log.expect("a log"));
        command
    }

    /// Runs `avouch admin …`.
    pub fn admin(&self, arguments: &[&str]) -> Value {
        let output = self.command().arg("admin").args(arguments).output().expect("avouch runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "admin {arguments:?}: {complaint}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Starts the process, and waits until it serves.
    pub async fn run(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log());
        let process = self
            .command()
            .arg("serve")
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn()
            .expect("avouch serves");
        self.process = Some(process);
        serving(&self.address, &self.partner).await;
    }

    /// Kills the process, as `kill -9` does.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("a process");
        process.kill().expect("the process can be killed");
        process.wait().expect("the process ended");
    }

    /// Asks the process to end, as a supervisor does (SIGTERM).
    pub fn send_sigterm(&self) {
        let id = self.process.as_ref().expect("a process").id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
        assert!(asked.success(), "SIGTERM was sent");
    }

    /// Waits for the process to end within a time limit; returns its status.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let mut process = self.process.take().expect("a process");
        eventually("the process to end", within, async || process.try_wait().expect("its status"))
            .await
    }

    /// Returns the value of a setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
    }

    /// Returns the id of the process.
    pub fn process(&self) -> u32 {
        self.process.as_ref().expect("a process").id()
    }

    /// Returns the resident memory of the process in KiB.
    pub fn resident_kib(&self) -> u64 {
        let id = self.process.as_ref().expect("a process").id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("/proc");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.settings.iter().cloned());
        command
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Returns the folder of the service's files.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the folder in which the browsers of this deployment have theirs.
    pub fn browsers(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    /// Creates a session with the sandbox platform.
    pub async fn create(&self, extra: &Value) -> Value {
        let answer = self.partner.create(extra).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.at("/data").clone()
    }

    /// Returns the id of a platform by its name.
    pub async fn platform(&self, name: &str) -> Value {
        let platforms = self.partner.get("browser-platforms").await;
        let mut all = platforms.at("/data").as_array().into_iter().flatten();
        let found = all.find(|platform| platform["name"] == name);
        found.map(|platform| platform["id"].clone()).expect("the platform is listed")
    }

    pub async fn session(&self, id: &str) -> Value {
        self.partner.get(&format!("browser-session/{id}")).await.at("/data").clone()
    }

    /// Returns the recording of a session.
    pub async fn recording(&self, id: &str) -> Value {
        self.partner.get(&format!("browser-session/{id}/recording")).await.at("/data").clone()
    }

    /// Returns the deliveries that the demo partner received for a session.
    pub async fn deliveries(&self, id: &str) -> Vec<Value> {
        let demo = Partner::new(&self.demo, None);
        let all = demo.send(hyper::Method::GET, "/deliveries", String::new()).await;
        let all = all.body.as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|one| one["payload"]["sessionId"] == id).collect()
    }

    pub async fn until(&self, id: &str, status: &str, within: Duration) -> Value {
        eventually(&format!("session {id} to be {status}"), within, async || {
            let session = self.session(id).await;
            (session["status"] == status).then_some(session)
        })
        .await
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.log()).unwrap_or_default());
        }
    }
}

pub(crate) async fn serving(address: &str, partner: &Partner) {
    eventually("the service to serve", Duration::from_secs(60), async || {
        tokio::net::TcpStream::connect(address).await.ok()?;
        (partner.send(Method::GET, "/readyz", String::new()).await.status == 200).then_some(())
    })
    .await;
}

/// Returns the binary under test: `AVOUCH_BIN`, or the one in the target folder of this test.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("AVOUCH_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("this test has a path");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE");
    let binary = folder.join("avouch");
    assert!(binary.exists(), "build it first: cargo build -p app");
    binary
}

/// Returns another binary of the workspace, from the folder of the one under test.
pub fn tool(name: &str) -> PathBuf {
    let tool = binary().with_file_name(name);
    assert!(tool.exists(), "build {name} first");
    tool
}

fn text(object: &Value, name: &str) -> String {
    object[name].as_str().expect("a text").to_owned()
}
