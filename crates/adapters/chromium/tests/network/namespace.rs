//! Network namespaces, each held by a process.

use std::{
    fs::{self, File},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::sched::{CloneFlags, setns};

/// A network and a mount namespace, which end on drop.
pub(crate) struct Namespace {
    holder: Child,
}

impl Namespace {
    pub(crate) fn start() -> Self {
        let holder = Command::new("unshare").args(["--net", "--mount", "sleep", "600"]).spawn();
        let namespace = Self { holder: holder.unwrap() };
        let deadline = Instant::now() + Duration::from_secs(60);
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        while fs::read_link(namespace.path()).unwrap() == ours {
            assert!(Instant::now() < deadline, "no namespace");
            thread::sleep(Duration::from_millis(5));
        }
        run(Some(&namespace), &["ip", "link", "set", "lo", "up"]);
        namespace
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    /// Runs a function in the network namespace; the sockets that it creates stay in it.
    pub(crate) fn within<T: Send + 'static>(&self, function: fn() -> T) -> T {
        let network = File::open(self.path()).unwrap();
        let in_namespace = move || {
            setns(network, CloneFlags::CLONE_NEWNET).unwrap();
            function()
        };
        thread::spawn(in_namespace).join().unwrap()
    }

    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        let mut command = command(Some(self), words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn command(namespace: Option<&Namespace>, words: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    match namespace {
        Some(namespace) => command.arg("--target").arg(namespace.holder.id().to_string()),
        None => command.args(["--target", "self"]),
    };
    let (program, rest) = words.split_first().unwrap();
    if namespace.is_none() {
        command = Command::new(program);
    } else {
        command.args(["--net", "--mount", "--", program]);
    }
    command.args(rest);
    command
}

/// Runs a command that must succeed, in a namespace or here.
pub(crate) fn run(namespace: Option<&Namespace>, words: &[&str]) {
    let status = command(namespace, words).status().unwrap();
    assert!(status.success(), "{words:?}: {status}");
}

/// Links two namespaces by a pair of interfaces, with an address at each end.
pub(crate) fn link(
    one: Option<&Namespace>,
    address: &str,
    other: Option<&Namespace>,
    beyond: &str,
) {
    static LINKS: AtomicU32 = AtomicU32::new(0);
    let number = LINKS.fetch_add(1, Ordering::Relaxed);
    let (near, far) = (format!("near{number}"), format!("far{number}"));
    run(None, &["ip", "link", "add", &near, "type", "veth", "peer", "name", &far]);
    for (namespace, end, address) in [(one, near, address), (other, far, beyond)] {
        if let Some(target) = namespace {
            run(None, &["ip", "link", "set", &end, "netns", &target.holder.id().to_string()]);
        }
        run(namespace, &["ip", "addr", "add", &format!("{address}/30"), "dev", &end]);
        run(namespace, &["ip", "link", "set", &end, "up"]);
    }
}
