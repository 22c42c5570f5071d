//! Attempts of a shell in Chromium's place to reach files, processes, devices, sockets and kernel
//! interfaces that it must not reach.
//!
//! `cargo test -p cdp --test sandbox -- --nocapture` prints the table, for the service as root and
//! as an unprivileged user. With `SANDBOX_HELPER` the same attempts are made with another helper,
//! such as the `cdp-jail` of an earlier commit; its results are printed and not asserted.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    collections::BTreeMap,
    env, fs,
    net::TcpListener,
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixListener, UnixStream},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use chromium::{Installation, Sandbox};
use serde_json::{Value, json};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(120);
/// The unprivileged user of the service, which nothing else uses.
const SERVICE: u32 = 60_700;

#[test]
fn a_shell_in_chromiums_place_reaches_nothing() {
    check(&attempts());
}

#[test]
fn a_shell_reaches_nothing_if_the_service_is_an_unprivileged_user() {
    if !rustix::process::geteuid().is_root() {
        // Then the first test covers this case.
        return;
    }
    let folder = folder();
    let program = folder.path().join("test");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    fs::copy(helper(), folder.path().join("cdp-jail")).unwrap();
    let user = SERVICE.to_string();
    let status = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"])
        .arg(program)
        .args(["--exact", "a_shell_in_chromiums_place_reaches_nothing", "--nocapture"])
        .env("SANDBOX_HELPER_COPY", folder.path().join("cdp-jail"))
        .env("HOME", folder.path())
        .current_dir("/")
        .status()
        .unwrap();
    assert!(status.success(), "the test failed as an unprivileged user, see above");
}

/// Every attempt with its outcome.
type Outcomes = BTreeMap<(String, String), String>;

fn check(outcomes: &Outcomes) {
    let who = if rustix::process::geteuid().is_root() { "root" } else { "an unprivileged user" };
    // Reaching what Chromium needs shows that the probe works.
    let needed = |group: &str| group == "permitted";
    let reached: Vec<_> = outcomes
        .iter()
        .filter(|((group, _), outcome)| *outcome != "denied" && !needed(group))
        .collect();
    let tried = outcomes.keys().filter(|(group, _)| !needed(group)).count();
    println!("the service is {who}: {tried} tried, {} reached", reached.len());
    for ((group, what), outcome) in outcomes {
        println!("| {group} | {what} | {outcome} |");
    }
    assert!(tried >= 180, "the probe ended early");
    if env::var_os("SANDBOX_HELPER").is_none() {
        assert!(reached.is_empty(), "{reached:?}");
        let missing: Vec<_> = outcomes
            .iter()
            .filter(|((group, _), outcome)| needed(group) && *outcome != "reached")
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

/// Runs the probe in the sandbox, with a target of every kind targets.
fn attempts() -> Outcomes {
    let folder = folder();
    let base = folder.path();
    let token = format!("secret-{}", std::process::id());
    let targets = Targets::create(base, &token);
    // A folder of its own, like Playwright's Chromium in a home folder.
    let browser = base.join("browser");
    fs::create_dir(&browser).unwrap();
    for (from, name) in [("/bin/sh", "sh"), ("/usr/bin/perl", "perl")] {
        fs::copy(fs::canonicalize(from).unwrap(), browser.join(name)).unwrap();
    }
    fs::write(browser.join("icudtl.dat"), "").unwrap();
    let own = base.join("own/b");
    fs::create_dir_all(own.join("profile")).unwrap();
    fs::write(own.join("probe.pl"), include_str!("sandbox/probe.pl")).unwrap();
    let mut words = vec![];
    words.push(browser.join("perl").into_os_string().into_string().unwrap());
    words.push(own.join("probe.pl").into_os_string().into_string().unwrap());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (name, value) in [
        ("base", base.display().to_string()),
        ("own", own.display().to_string()),
        ("browser", browser.display().to_string()),
        ("helper", helper().display().to_string()),
        ("tmp", targets.tmp.path().display().to_string()),
        ("shm", targets.shm.path().display().to_string()),
        ("nekot", token.chars().rev().collect()),
        ("victim", targets.victim.id().to_string()),
        ("service", std::process::id().to_string()),
        ("port", targets.listener.local_addr().unwrap().port().to_string()),
        ("host", host.trim().to_owned()),
    ] {
        words.push(format!("{name}={value}"));
    }
    let (socket, helper_socket) = UnixStream::pair().unwrap();
    let program = browser.join("sh");
    let mut child = command(&own, &program)
        .args(["-c", "\"$@\"; exit 0", "sh"])
        .args(words)
        .stdin(OwnedFd::from(helper_socket))
        .spawn()
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the probe did not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(socket);
    let text = fs::read_to_string(own.join("done.txt")).unwrap();
    let lines = text.lines().map(|line| {
        let mut words = line.split('\t').map(str::to_owned);
        let mut next = || words.next().unwrap();
        ((next(), next()), next())
    });
    lines.collect()
}

/// Returns the helper's command with its configuration, and in addition the list of hidden folders that
/// the helper took while the sandbox was a deny-list.
fn command(own: &Path, program: &Path) -> Command {
    let sandbox = Sandbox {
        helper: helper(),
        arguments: vec![],
        installation: Installation::find(program).unwrap(),
        policies: None,
        cores: 2,
    };
    let configured = sandbox.command(own, 0).unwrap();
    let config = configured.get_args().next().unwrap();
    let mut config: Value = serde_json::from_slice(config.as_encoded_bytes()).unwrap();
    let hidden = json!(["/tmp", "/run", "/root"]);
    config.as_object_mut().unwrap().insert("hidden".to_owned(), hidden);
    let mut command = Command::new(helper());
    command.arg(config.to_string()).arg(program);
    command
}

/// The targets outside of the sandbox.
struct Targets {
    tmp: tempfile::NamedTempFile,
    shm: tempfile::NamedTempFile,
    listener: TcpListener,
    victim: Child,
    _sockets: [UnixListener; 2],
}

impl Targets {
    fn create(base: &Path, token: &str) -> Self {
        fs::write(base.join("world.txt"), "canary").unwrap();
        fs::write(base.join("own.txt"), "canary").unwrap();
        fs::set_permissions(base.join("own.txt"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(base.join("recordings")).unwrap();
        fs::write(base.join("recordings/film.mp4"), "canary").unwrap();
        let in_folder = UnixListener::bind(base.join("socket")).unwrap();
        fs::set_permissions(base.join("socket"), fs::Permissions::from_mode(0o777)).unwrap();
        let name = SocketAddr::from_abstract_name(token).unwrap();
        let abstract_one = UnixListener::bind_addr(&name).unwrap();
        let [tmp, shm] = ["/tmp", "/dev/shm"].map(|folder| {
            let file = tempfile::NamedTempFile::new_in(folder).unwrap();
            fs::write(file.path(), "canary").unwrap();
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
            file
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // A secret on its command line, and one in its environment.
        let mut victim = Command::new("sleep");
        victim.arg0(token).arg("600").env("SECRET", token).stdin(Stdio::null());
        let victim = victim.spawn().unwrap();
        Self { tmp, shm, listener, victim, _sockets: [in_folder, abstract_one] }
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Creates a world-readable folder outside of those that the deny-list hid.
fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("sandbox-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn helper() -> PathBuf {
    let named = env::var_os("SANDBOX_HELPER_COPY").or_else(|| env::var_os("SANDBOX_HELPER"));
    named.map_or_else(|| env!("CARGO_BIN_EXE_cdp-jail").into(), PathBuf::from)
}
