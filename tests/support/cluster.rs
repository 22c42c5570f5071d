//! Several instances of one deployment behind a load balancer (`HAProxy`) that sends each connection to
//! another one, in turn.

use std::{
    fs,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use testkit::certificates::Authority;

use crate::{eventually, free_port, partner::Partner, service::Deployment};

/// The name in the certificates of instances.
const NAME: &str = "instance.avouch.internal";

/// The instances, and the load balancer at the address of the deployment. Dropping it ends all of them.
pub struct Cluster {
    pub deployment: Deployment,
    instances: Vec<Instance>,
    balancer: Child,
    files: TempDir,
}

struct Instance {
    address: String,
    /// Its settings beside those of the deployment.
    settings: Vec<(&'static str, String)>,
    process: Option<Child>,
}

impl Cluster {
    /// Starts an instance for each of these numbers of browsers. Instances without certificates know
    /// nothing of each other.
    pub async fn start(deployment: Deployment, browsers: &[u32], certified: bool) -> Self {
        let instances: Vec<_> = browsers.iter().map(|browsers| (*browsers, None)).collect();
        Self::start_in(deployment, &instances, certified).await
    }

    /// Starts an instance with browsers for each of these regions, which have its address.
    pub async fn in_regions(deployment: Deployment, regions: &[(u32, &str)]) -> Self {
        let instances: Vec<_> =
            regions.iter().map(|(browsers, region)| (*browsers, Some(*region))).collect();
        Self::start_in(deployment, &instances, true).await
    }

    async fn start_in(
        mut deployment: Deployment,
        wanted: &[(u32, Option<&str>)],
        certified: bool,
    ) -> Self {
        let files = tempfile::tempdir().expect("a folder");
        let authority = Authority::new("Instances");
        let path = |name: String| files.path().join(name).display().to_string();
        fs::write(path("roots.pem".into()), authority.pem()).expect("a file");
        let mut instances = Vec::new();
        let mut addresses = Vec::new();
        for (number, (browsers, region)) in wanted.iter().enumerate() {
            let address = format!("127.0.0.1:{}", free_port());
            let mut settings = vec![("AVOUCH_BROWSERS", browsers.to_string())];
            if let Some(region) = region {
                settings.push(("AVOUCH_REGION", (*region).to_owned()));
                addresses.push(format!("{region}=http://{address}"));
            }
            if certified {
                let certificate = authority.valid(&[NAME]);
                let (cert, key) =
                    (path(format!("cert-{number}.pem")), path(format!("key-{number}.pem")));
                fs::write(&cert, certificate.certificate).expect("a file");
                fs::write(&key, certificate.key).expect("a file");
                settings.extend([
                    ("AVOUCH_INSTANCE_LISTEN", format!("127.0.0.1:{}", free_port())),
                    ("AVOUCH_INSTANCE_CERT", cert),
                    ("AVOUCH_INSTANCE_KEY", key),
                    ("AVOUCH_INSTANCE_ROOTS", path("roots.pem".into())),
                ]);
            }
            instances.push(Instance { address, settings, process: None });
        }
        if !addresses.is_empty() {
            deployment.set("AVOUCH_REGIONS", addresses.join(" "));
        }
        let balancer = balancer(&deployment, &instances, &files);
        let mut cluster = Self { deployment, instances, balancer, files };
        for number in 0..wanted.len() {
            cluster.run(number).await;
        }
        cluster.until_balanced(wanted.len()).await;
        cluster
    }

    /// Starts an instance, and waits until it is ready.
    pub async fn run(&mut self, number: usize) {
        self.begin(number);
        let instance = &self.instances[number];
        let partner = Partner::new(&format!("http://{}", instance.address), None);
        crate::service::serving(&instance.address, &partner).await;
    }

    /// Starts an instance with the deployment's present program, and does not wait for it.
    pub fn begin(&mut self, number: usize) {
        let instance = &mut self.instances[number];
        let mut command = self.deployment.serving_at(&instance.address);
        command.envs(instance.settings.iter().cloned());
        instance.process = Some(command.spawn().expect("avouch serves"));
    }

    /// Asks an instance to end, as a supervisor does (SIGTERM).
    pub fn send_sigterm(&self, number: usize) {
        let process = self.instances[number].process.as_ref().expect("a process");
        let asked = Command::new("kill").args(["-TERM", &process.id().to_string()]).status();
        assert!(asked.expect("kill runs").success(), "SIGTERM was sent");
    }

    /// Waits for an instance to end within a time limit; returns its status.
    pub async fn ended(&mut self, number: usize, within: Duration) -> ExitStatus {
        let mut process = self.instances[number].process.take().expect("a process");
        eventually("the instance to end", within, async || process.try_wait().expect("its status"))
            .await
    }

    /// Returns how many sessions each instance has reported to have, by its number.
    pub async fn sessions(&self) -> Vec<i64> {
        let mut counts = Vec::new();
        for instance in &self.instances {
            let mut settings = instance.settings.iter();
            let reported = settings.find(|(name, _)| *name == "AVOUCH_INSTANCE_LISTEN");
            let (_, address) = reported.expect("an instance with a certificate");
            let query = format!(
                "SELECT coalesce(sum(sessions), 0)::text FROM instances WHERE address = '{address}'"
            );
            let count = self.deployment.database.value(&query).await;
            counts.push(count.parse().expect("a number"));
        }
        counts
    }

    /// Waits until an instance knows what all have reported by now, and has acted on it.
    pub async fn until_reported(&self, number: usize) {
        let mut settings = self.instances[number].settings.iter();
        let reported = settings.find(|(name, _)| *name == "AVOUCH_INSTANCE_LISTEN");
        let (_, address) = reported.expect("an instance with a certificate");
        let query = format!("SELECT reports::text FROM instances WHERE address = '{address}'");
        let reports =
            async || self.deployment.database.value(&query).await.parse::<i64>().unwrap_or(0);
        // One may have begun before, and the one after that is complete when the next one is there.
        let wanted = reports().await + 3;
        eventually("reports of the instance", Duration::from_secs(60), async || {
            (reports().await >= wanted).then_some(())
        })
        .await;
    }

    /// Returns the address of an instance, past the load balancer.
    pub fn address(&self, number: usize) -> &str {
        &self.instances[number].address
    }

    /// Starts an instance again that has ended by itself, and returns whether it had.
    pub fn restart_if_ended(&mut self, number: usize) -> bool {
        let process = self.instances[number].process.as_mut();
        let ended = process.is_some_and(|one| one.try_wait().expect("its status").is_some());
        if ended {
            self.begin(number);
        }
        ended
    }

    /// Kills the load balancer, as `kill -9` does, and starts it again.
    pub fn restart_balancer(&mut self) {
        let _ = self.balancer.kill();
        let _ = self.balancer.wait();
        self.balancer = balancer(&self.deployment, &self.instances, &self.files);
    }

    /// Kills an instance, as `kill -9` does.
    pub fn kill(&mut self, number: usize) {
        let mut process = self.instances[number].process.take().expect("a process");
        process.kill().expect("the process can be killed");
        process.wait().expect("the process ended");
    }

    /// Returns the process of each instance that was started.
    pub fn processes(&self) -> Vec<u32> {
        self.instances.iter().filter_map(|one| Some(one.process.as_ref()?.id())).collect()
    }

    /// Returns a session's link at an instance, past the load balancer.
    pub fn link_at(&self, link: &str, number: usize) -> String {
        let balancer = self.deployment.setting("AVOUCH_LISTEN").expect("an address");
        link.replace(&balancer, &self.instances[number].address)
    }

    /// Waits until the load balancer sends requests to this many instances.
    pub async fn until_balanced(&self, count: usize) {
        let statistics = self.files.path().join("statistics");
        eventually("the load balancer", Duration::from_secs(60), async || {
            let stream = std::os::unix::net::UnixStream::connect(&statistics).ok()?;
            let up = status(stream).ok()?.matches(",UP,").count();
            // The line of the group counts, too.
            (up == count + 1).then_some(())
        })
        .await;
    }
}

fn status(mut stream: std::os::unix::net::UnixStream) -> std::io::Result<String> {
    use std::io::{Read as _, Write as _};

    stream.write_all(b"show stat\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Starts `HAProxy` at the address of the deployment.
fn balancer(deployment: &Deployment, instances: &[Instance], files: &TempDir) -> Child {
    let listen = deployment.setting("AVOUCH_LISTEN").expect("an address");
    let statistics = files.path().join("statistics");
    let mut text = format!(
        "global\n  stats socket {}\n\
         defaults\n  mode http\n  timeout connect 2s\n  timeout check 10s\n  timeout client 1h\n  timeout server 1h\n  \
         timeout tunnel 1h\n  timeout http-request 10s\n  option redispatch 1\n  retries 3\n  \
         retry-on conn-failure\n\
         frontend all\n  bind {listen}\n  default_backend instances\n\
         backend instances\n  balance roundrobin\n  option httpchk GET /readyz\n",
        statistics.display()
    );
    for (number, instance) in instances.iter().enumerate() {
        let server =
            format!("  server i{number} {} check inter 200ms fall 1 rise 1\n", instance.address);
        text.push_str(&server);
    }
    let file = files.path().join("haproxy.cfg");
    fs::write(&file, text).expect("a file");
    // Where Debian installs it; not every user has the folder among those of programs.
    let installed = Path::new("/usr/sbin/haproxy");
    let mut command =
        Command::new(if installed.exists() { installed } else { Path::new("haproxy") });
    command.arg("-f").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| {
        panic!("haproxy must be installed ({error}): run `cargo xtask test`")
    })
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let processes = self.instances.iter_mut().filter_map(|one| one.process.take());
        for mut process in processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = self.balancer.kill();
        let _ = self.balancer.wait();
    }
}
