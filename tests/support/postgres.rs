//! A PostgreSQL server of a test's own, which can crash.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;
use testkit::certificates::Certified;

use crate::free_port;

/// A running server; ended with this value.
#[derive(Debug)]
pub struct Cluster {
    pub url: String,
    pub port: u16,
    bin: PathBuf,
    folder: TempDir,
}

impl Cluster {
    /// Makes a server that keeps what was committed, and starts it.
    #[must_use]
    pub fn start() -> Self {
        let bin = binaries().expect("PostgreSQL is installed");
        let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
        if rustix::process::geteuid().is_root() {
            // The server refuses to run as root.
            done(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let cluster = Self { url, port, bin, folder };
        let make = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "-D"];
        done(cluster.tool("initdb").args(make).arg(cluster.data()));
        cluster.up();
        cluster
    }

    /// Ends the server without letting it finish anything, and starts it again.
    pub fn crash(&self) {
        done(self.tool("pg_ctl").args(["stop", "-s", "-m", "immediate", "-D"]).arg(self.data()));
        self.up();
    }

    /// From now on takes connections as this access list (`pg_hba.conf`) says, over TLS with this
    /// certificate; clients' certificates come from the authority, PEM.
    pub fn secure(&self, certified: &Certified, authority: &str, access: &str) {
        let files = [
            ("server.crt", certified.certificate.as_str()),
            ("server.key", &certified.key),
            ("root.crt", authority),
            ("pg_hba.conf", access),
            ("postgresql.auto.conf", "ssl = on\nssl_ca_file = 'root.crt'\n"),
        ];
        for (name, text) in files {
            let path = self.data().join(name);
            fs::write(&path, text).expect("a file of the server");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
            if rustix::process::geteuid().is_root() {
                done(Command::new("chown").arg("postgres").arg(&path));
            }
        }
        done(self.tool("pg_ctl").args(["reload", "-s", "-D"]).arg(self.data()));
    }

    /// Stops the server's processes half-way in whatever they do (SIGSTOP): it hangs, and its
    /// connections stay.
    pub fn pause(&self) {
        signal("-STOP", &self.processes());
    }

    /// Lets them go on.
    pub fn resume(&self) {
        signal("-CONT", &self.processes());
    }

    /// The server's processes, the first before its children.
    fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let first = text.lines().next().and_then(|line| line.parse::<u32>().ok());
        let parent = |entry: &fs::DirEntry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
        };
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let children = entries.filter(|entry| first.is_some() && parent(entry) == first);
        let children = children.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        first.into_iter().chain(children).collect()
    }

    fn up(&self) {
        let folder = self.folder.path();
        let options = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1 -c max_connections=300",
            self.port,
            folder.display()
        );
        let mut start = self.tool("pg_ctl");
        start.args(["start", "-w", "-s", "-o", &options, "-l"]).arg(folder.join("log"));
        done(start.arg("-D").arg(self.data()));
    }

    /// Everything that `pg_dump` writes of the database.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let mut dump = self.tool("pg_dump");
        let output = dump.arg(&self.url).stdout(Stdio::piped()).output().expect("it runs");
        assert!(output.status.success(), "pg_dump: {}", output.status);
        output.stdout
    }

    /// The folder with its files.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of the server, run as an ordinary user.
    fn tool(&self, name: &str) -> Command {
        let program = self.bin.join(name);
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(Path::new("/")).stdout(Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.resume();
        let mut stop = self.tool("pg_ctl");
        let _ = stop.args(["stop", "-s", "-m", "immediate", "-D"]).arg(self.data()).status();
    }
}

fn signal(name: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    let _ = Command::new("kill").arg(name).args(processes).stderr(Stdio::null()).status();
}

fn done(command: &mut Command) {
    let status = command.status().expect("it runs");
    assert!(status.success(), "{command:?}: {status}");
}

/// Where the newest server's programs are.
fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<_> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse::<u32>().ok()?;
            let bin = entry.path().join("bin");
            bin.join("initdb").exists().then_some((version, bin))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}
