//! A PostgreSQL server to throw away: own folder, free port, ended with this value.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{Failure, command::output};

/// Whether what was committed is on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Kept,
    /// Of no use to a server that is thrown away, and slow.
    GivenUp,
}

/// A running server.
pub(crate) struct Postgres {
    pub(crate) url: String,
    bin: PathBuf,
    folder: TempDir,
}

/// Where the newest server's programs are.
pub(crate) fn binaries() -> Option<PathBuf> {
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

impl Postgres {
    pub(crate) fn start(durability: Durability) -> Result<Self, Failure> {
        let bin = binaries().ok_or("there is no PostgreSQL server: install `postgresql`")?;
        let folder = tempfile::tempdir()?;
        if rustix::process::geteuid().is_root() {
            // The server refuses to run as root.
            output(Command::new("chown").arg("postgres").arg(folder.path()))?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let server = Self { url, bin, folder };
        let data = server.data();
        output(
            server
                .tool("initdb")
                .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "-D"])
                .arg(&data),
        )?;
        let fsync = if durability == Durability::Kept { "on" } else { "off" };
        let options = format!(
            "-p {port} -k {} -c listen_addresses=127.0.0.1 -c fsync={fsync} -c max_connections=500 \
             -c shared_buffers=512MB",
            server.folder.path().display()
        );
        let log = server.folder.path().join("log");
        output(
            server
                .tool("pg_ctl")
                .args(["start", "-w", "-s", "-o", &options, "-l"])
                .arg(log)
                .arg("-D")
                .arg(&data),
        )?;
        println!("PostgreSQL runs on port {port}");
        Ok(server)
    }

    fn data(&self) -> PathBuf {
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
        command.current_dir(Path::new("/"));
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.data();
        let stop =
            output(self.tool("pg_ctl").args(["stop", "-s", "-m", "immediate", "-D"]).arg(data));
        if let Err(error) = stop {
            eprintln!("xtask: the PostgreSQL server was not stopped: {error}");
        }
    }
}
