//! Network namespaces, held by a process each.

use std::{
    fs::{self, File},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::sched::{CloneFlags, setns};

/// A network, and a view of the file system, that end with this.
pub(crate) struct Namespace {
    holder: Child,
}

impl Namespace {
    pub(crate) fn start() -> Self {
        let holder = Command::new("unshare").args(["--net", "--mount", "sleep", "600"]).spawn();
        let namespace = Self { holder: holder.unwrap() };
        let ends = Instant::now() + Duration::from_secs(10);
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        while fs::read_link(namespace.path()).unwrap() == ours {
            assert!(Instant::now() < ends, "no namespace");
            thread::sleep(Duration::from_millis(5));
        }
        run(Some(&namespace), &["ip", "link", "set", "lo", "up"]);
        namespace
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    /// Does something there: sockets that it makes stay there.
    pub(crate) fn within<T: Send + 'static>(&self, what: fn() -> T) -> T {
        let network = File::open(self.path()).unwrap();
        let there = move || {
            setns(network, CloneFlags::CLONE_NEWNET).unwrap();
            what()
        };
        thread::spawn(there).join().unwrap()
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

fn command(at: Option<&Namespace>, words: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    match at {
        Some(at) => command.arg("--target").arg(at.holder.id().to_string()),
        None => command.args(["--target", "self"]),
    };
    let (program, rest) = words.split_first().unwrap();
    if at.is_none() {
        command = Command::new(program);
    } else {
        command.args(["--net", "--mount", "--", program]);
    }
    command.args(rest);
    command
}

/// Runs a command, here or there, that has to succeed.
pub(crate) fn run(at: Option<&Namespace>, words: &[&str]) {
    let status = command(at, words).status().unwrap();
    assert!(status.success(), "{words:?}: {status}");
}

/// A wire between two of them, with an address at each end.
pub(crate) fn wire(
    one: Option<&Namespace>,
    address: &str,
    other: Option<&Namespace>,
    beyond: &str,
) {
    static WIRES: AtomicU32 = AtomicU32::new(0);
    let number = WIRES.fetch_add(1, Ordering::Relaxed);
    let (near, far) = (format!("near{number}"), format!("far{number}"));
    run(None, &["ip", "link", "add", &near, "type", "veth", "peer", "name", &far]);
    for (at, end, address) in [(one, near, address), (other, far, beyond)] {
        if let Some(there) = at {
            run(None, &["ip", "link", "set", &end, "netns", &there.holder.id().to_string()]);
        }
        run(at, &["ip", "addr", "add", &format!("{address}/30"), "dev", &end]);
        run(at, &["ip", "link", "set", &end, "up"]);
    }
}
