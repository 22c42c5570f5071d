//! A PostgreSQL server of a test's own, which can crash.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::free_port;

/// A running server; ended with this value.
#[derive(Debug)]
pub struct Cluster {
    pub url: String,
    port: u16,
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
        let mut stop = self.tool("pg_ctl");
        let _ = stop.args(["stop", "-s", "-m", "immediate", "-D"]).arg(self.data()).status();
    }
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
