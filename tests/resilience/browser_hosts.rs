//! Browsers on browser hosts: processes without a database and without keys, that run the browsers of
//! instances.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{
    applicant::Applicant, database::Kind, eventually, free_port, processes::processes_with,
    service::Deployment,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::certificates::Authority;

const TIMEOUT: Duration = Duration::from_secs(60);
const INSTANCE: &str = "instance.avouch.internal";
const HOST: &str = "browser-host.avouch.internal";

/// An authority, and the certificates that it issued.
struct Certificates {
    authority: Authority,
    folder: TempDir,
}

impl Certificates {
    fn new() -> Self {
        let (authority, folder) = (Authority::new("Instances"), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("roots.pem"), authority.pem()).unwrap();
        Self { authority, folder }
    }

    /// Returns the settings of a process with a certificate of this name.
    fn settings(&self, name: &str, number: usize) -> [(&'static str, String); 4] {
        let certified = self.authority.valid(&[name]);
        let path = |file: String| self.folder.path().join(file).display().to_string();
        let (cert, key) = (path(format!("{number}.pem")), path(format!("{number}.key")));
        fs::write(&cert, certified.certificate).unwrap();
        fs::write(&key, certified.key).unwrap();
        [
            ("AVOUCH_INSTANCE_LISTEN", format!("127.0.0.1:{}", free_port())),
            ("AVOUCH_INSTANCE_CERT", cert),
            ("AVOUCH_INSTANCE_KEY", key),
            ("AVOUCH_INSTANCE_ROOTS", path("roots.pem".into())),
        ]
    }
}

/// A browser host, killed when it is dropped.
struct Host {
    address: String,
    folder: TempDir,
    command: Command,
    process: Child,
}

impl Host {
    /// Starts a host with no setting beside those of browsers and its certificate.
    fn start(
        deployment: &Deployment,
        certificates: &Certificates,
        number: usize,
        slots: u32,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = certificates.settings(HOST, number);
        let address = settings[0].1.clone();
        let mut command = Command::new(&deployment.program);
        command.args(["serve", "--role", "browser"]).env_clear().envs(settings);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", path).env("TMPDIR", folder.path()).current_dir(folder.path());
        command.env("AVOUCH_BROWSERS", slots.to_string()).stdout(Stdio::null());
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.stderr(log);
        let process = command.spawn().unwrap();
        Self { address, folder, command, process }
    }

    /// Kills the host, as `kill -9` does.
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn run(&mut self) {
        self.process = self.command.spawn().unwrap();
    }

    /// Whether a browser runs here.
    fn has_browsers(&self) -> bool {
        processes_with(self.folder.path()).iter().any(|one| one.contains("--type=renderer"))
    }

    async fn until_empty(&self) {
        eventually("the host's browsers to end", TIMEOUT, async || {
            let left = processes_with(self.folder.path());
            let browsers = left.iter().filter(|one| one.contains("--user-data-dir"));
            (browsers.count() == 0).then_some(())
        })
        .await;
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the host:\n{}", self.log());
        }
    }
}

/// Starts an instance with two hosts, of one slot each.
async fn deployed(certificates: &Certificates) -> (Deployment, [Host; 2]) {
    deployed_with(certificates, 0).await
}

/// The same, with this number of warm browsers.
async fn deployed_with(certificates: &Certificates, warm: u32) -> (Deployment, [Host; 2]) {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let hosts = [1, 2].map(|number| Host::start(&deployment, certificates, number, 1));
    for (name, value) in certificates.settings(INSTANCE, 0) {
        deployment.set(name, value);
    }
    deployment.set("AVOUCH_BROWSERS_WARM", warm.to_string());
    deployment.set("AVOUCH_BROWSER_HOSTS", format!("{},{}", hosts[0].address, hosts[1].address));
    for host in &hosts {
        eventually("the host to listen", TIMEOUT, async || {
            tokio::net::TcpStream::connect(&host.address).await.ok()
        })
        .await;
    }
    deployment.run().await;
    (deployment, hosts)
}

fn text(session: &Value, name: &str) -> String {
    session[name].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_run_on_hosts_wait_for_them_and_survive_their_crash() {
    let certificates = Certificates::new();
    let (deployment, mut hosts) = deployed(&certificates).await;

    // Two sessions have the two slots, a third one waits.
    let mut shown = vec![];
    for _ in 0..3 {
        let session = deployment.create(&json!({})).await;
        let applicant = Applicant::visit(&deployment.demo).await;
        applicant.show(&text(&session, "embedUrl")).await;
        let embed = applicant.embed().await;
        if shown.len() < 2 {
            embed.until_prompted("Sign in").await;
        }
        shown.push((text(&session, "sessionId"), applicant));
    }
    assert!(hosts.iter().all(Host::has_browsers), "one browser on each host");
    assert!(processes_with(&deployment.browsers()).is_empty(), "no browser beside the keys");
    deployment.until(&shown[2].0, "INITIALIZING", TIMEOUT).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(deployment.session(&shown[2].0).await["status"], "INITIALIZING", "it waits");

    // The first one ends, and the third one begins on its host.
    let (id, applicant) = shown.remove(0);
    let embed = applicant.embed().await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    let session = deployment.until(&id, "COMPLETED", TIMEOUT).await;
    assert!(session["extractedData"].to_string().contains("Ada Example"), "{session}");
    applicant.close().await;
    shown[1].1.embed().await.until_prompted("Sign in").await;

    // A host that is killed leaves no browser; its session gets another one.
    for host in &mut hosts {
        host.kill();
        host.until_empty().await;
    }
    for host in &mut hosts {
        host.run();
    }
    for (id, applicant) in shown {
        let embed = applicant.embed().await;
        eventually("the session to begin again", TIMEOUT, async || {
            let timeline = deployment.partner.timeline(&id).await;
            timeline.iter().any(|(event, _)| event == "BrowserLost").then_some(())
        })
        .await;
        embed.sign_in("ok", "any").await;
        embed.click("[data-testid=consent-approve]").await;
        assert_eq!(embed.until_outcome().await, "COMPLETED");
        deployment.until(&id, "COMPLETED", TIMEOUT).await;
        applicant.close().await;
    }
    for host in &hosts {
        host.until_empty().await;
        let log = host.log();
        for secret in ["Ada Example", "x-api-key", "postgres"] {
            assert!(!log.contains(secret), "{secret} in the log of a host: {log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_drains_does_not_wait_for_a_warm_browser() {
    let certificates = Certificates::new();
    let (_deployment, mut hosts) = deployed_with(&certificates, 1).await;
    let number =
        eventually("a warm browser", TIMEOUT, async || hosts.iter().position(Host::has_browsers))
            .await;
    let host = &mut hosts[number];
    let id = host.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    // It would wait for ten minutes.
    let status =
        eventually("the host to stop", TIMEOUT, async || host.process.try_wait().unwrap()).await;
    assert!(status.success(), "{status}");
    let other = &hosts[1 - number];
    eventually("a warm browser of the other host", TIMEOUT, async || {
        other.has_browsers().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_has_no_files_of_its_own_and_ends_its_browsers_when_it_stops() {
    let certificates = Certificates::new();
    let (mut deployment, mut hosts) = deployed(&certificates).await;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    applicant.show(&text(&session, "embedUrl")).await;
    applicant.embed().await.until_prompted("Sign in").await;
    let number = hosts.iter().position(Host::has_browsers).unwrap();
    // Neither a database nor a key is written where a host runs.
    let folder = hosts[number].folder.path();
    let files: Vec<_> =
        fs::read_dir(folder).unwrap().flatten().map(|one| one.file_name()).collect();
    let expected = |name: &std::ffi::OsString| {
        name == "log" || name.to_str().is_some_and(|name| name.starts_with("avouch-"))
    };
    assert!(files.iter().all(expected), "{files:?}");

    // An instance that is killed leaves no browser on a host.
    deployment.kill();
    hosts[number].until_empty().await;
    deployment.run().await;
    // A host drains: it waits for the browser of its session, and then stops.
    let session = deployment.create(&json!({})).await;
    applicant.show(&text(&session, "embedUrl")).await;
    applicant.embed().await.until_prompted("Sign in").await;
    let number = hosts.iter().position(Host::has_browsers).unwrap();
    let host = &mut hosts[number];
    let id = host.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(host.process.try_wait().unwrap().is_none(), "the host waits for its browser");
    deployment.partner.delete(&format!("browser-session/{}", text(&session, "sessionId"))).await;
    let status =
        eventually("the host to stop", TIMEOUT, async || host.process.try_wait().unwrap()).await;
    assert!(status.success(), "{status}");
    let left: Vec<_> = fs::read_dir(host.folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "only the log is left: {left:?}");
    applicant.close().await;
}
