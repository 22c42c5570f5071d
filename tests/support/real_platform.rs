//! A real web application of `platforms/`: installed and started by its `setup`, and published by its
//! definition.

use std::{
    fs,
    net::TcpStream,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::{eventually, free_port, root, service::Deployment};

/// Installations fetch hundreds of packages.
const SERVING_TIMEOUT: Duration = Duration::from_secs(1200);

/// A running application. Dropping it ends its processes.
pub struct RealPlatform {
    pub name: String,
    /// The applicant's steps and what they lead to: `journey.json`.
    pub journey: Value,
    definition: String,
    /// The hosts of the definition and the port of each.
    ports: Vec<(String, u16)>,
    log: PathBuf,
    process: Child,
}

impl RealPlatform {
    /// Installs the application into a folder, where it is kept for the next time, and starts it.
    pub async fn start(name: &str, folder: &Path) -> Self {
        let source = root().join("platforms").join(name);
        let read =
            |file: &str| fs::read_to_string(source.join(file)).expect("a file of a platform");
        let definition = with_sign_ins(&read("definition.json"), &source);
        let journey = serde_json::from_str(&read("journey.json")).expect("a journey");
        let ports: Vec<_> =
            hosts(&definition).into_iter().map(|host| (host, free_port())).collect();
        fs::create_dir_all(folder).expect("a folder");
        let log = folder.join("log");
        let output = fs::File::create(&log).expect("a log");
        let errors = output.try_clone().expect("the same log");
        let mut command = Command::new(source.join("setup"));
        command.arg(folder).args(ports.iter().map(|(_, port)| port.to_string()));
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        // A group of its own, so that all that the script starts ends with it.
        let process = command.process_group(0).spawn().expect("the setup runs");
        let mut platform = Self { name: name.to_owned(), journey, definition, ports, log, process };
        platform.until_serving().await;
        platform
    }

    async fn until_serving(&mut self) {
        eventually(&format!("{} to serve", self.name), SERVING_TIMEOUT, async || {
            if let Some(status) = self.process.try_wait().expect("its status") {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                panic!("the setup of {} ended with {status}: {log}", self.name);
            }
            let mut ports = self.ports.iter();
            ports.all(|(_, port)| TcpStream::connect(("127.0.0.1", *port)).is_ok()).then_some(())
        })
        .await;
    }

    /// Permits browsers to reach the application; to be called before the deployment starts.
    pub fn allow(&self, deployment: &mut Deployment) {
        let allowed = deployment.setting("AVOUCH_EGRESS_ALLOW").unwrap_or_default();
        let own = self.ports.iter().map(|(host, port)| format!("{host}:{port}"));
        let all: Vec<_> = [allowed].into_iter().chain(own).collect();
        deployment.set("AVOUCH_EGRESS_ALLOW", all.join(","));
    }

    /// Publishes the definition with the ports on which the application serves; returns its id.
    pub fn publish(&self, deployment: &Deployment) -> Value {
        let file = self.write(deployment.folder.path());
        let file = file.to_str().expect("a plain path");
        deployment.admin(&["publish-platform", file])["platformId"].clone()
    }

    /// Writes the definition with the ports on which the application serves into a folder; returns its
    /// file.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let file = folder.join(format!("{}.json", self.name));
        let mut text = self.definition.clone();
        for (host, port) in &self.ports {
            let address = format!("http://{host}");
            for end in ["/", "\""] {
                let with_port = format!("{address}:{port}{end}");
                text = text.replace(&format!("{address}{end}"), &with_port);
            }
        }
        fs::write(&file, text).expect("a file");
        file
    }

    /// Returns a text without the ports on which the application serves.
    #[must_use]
    pub fn without_ports(&self, text: &str) -> String {
        let hosts = self.ports.iter();
        hosts.fold(text.to_owned(), |text, (host, port)| {
            text.replace(&format!("{host}:{port}"), host)
        })
    }
}

impl Drop for RealPlatform {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

/// Returns a definition with its shared sign-ins in place of the paths of their files.
fn with_sign_ins(definition: &str, folder: &Path) -> String {
    let mut definition: Value = serde_json::from_str(definition).expect("a definition");
    // Indexing would add the member.
    let sign_ins = definition.get_mut("signIns").and_then(Value::as_object_mut);
    for sign_in in sign_ins.into_iter().flat_map(|all| all.values_mut()) {
        let path = sign_in.as_str().expect("the path of a file");
        let text = fs::read_to_string(folder.join(path)).expect("a sign-in");
        *sign_in = serde_json::from_str(&text).expect("a sign-in");
    }
    format!("{definition:#}")
}

/// Returns the hosts of a definition, each of which has a port: `hosts`, then `ssoHosts`, and then those
/// of its sign-ins.
fn hosts(definition: &str) -> Vec<String> {
    let definition: Value = serde_json::from_str(definition).expect("a definition");
    let sign_ins = definition["signIns"].as_object().into_iter().flat_map(|all| all.values());
    let lists = [&definition["hosts"], &definition["ssoHosts"]].into_iter();
    let lists = lists.chain(sign_ins.map(|sign_in| &sign_in["ssoHosts"]));
    let mut hosts: Vec<String> = vec![];
    for host in lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str) {
        if !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}
