//! A throwaway PostgreSQL server for tests and benchmarks: its own folder and port, stopped when the
//! value is dropped.
//!
//! **Invariant:** knows nothing of this workspace, so that `xtask` builds quickly.

use std::{
    fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// Whether a commit waits until its data is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A commit is on disk before it is acknowledged, as in production.
    Fsync,
    /// Commits do not wait for the disk (`fsync=off`): faster, and enough where no crash is tested.
    NoFsync,
}

/// A running server; stopped when it is dropped, and its files are then deleted in the background.
#[derive(Debug)]
pub struct PostgresServer {
    /// The database `postgres` with its superuser, who needs no password.
    pub url: String,
    pub port: u16,
    bin: PathBuf,
    folder: TempDir,
    durability: Durability,
}

/// Returns the folder of the newest installed server's programs, as Debian's packages lay them out.
#[must_use]
pub fn binaries() -> Option<PathBuf> {
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

impl PostgresServer {
    /// Initialises an empty server in a temporary folder and starts it on a port of 127.0.0.1.
    pub fn start(port: u16, durability: Durability) -> io::Result<Self> {
        let server = Self::without_data(port, durability)?;
        let options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "-D"];
        run(server.tool("initdb").args(options).arg(server.data()))?;
        server.run()?;
        Ok(server)
    }

    /// Prepares a server that does not run and has no data folder: a backup is restored to
    /// [`Self::data`], and then [`Self::run`] starts the server.
    pub fn without_data(port: u16, durability: Durability) -> io::Result<Self> {
        let missing = || io::Error::other("no PostgreSQL server is installed (`postgresql`)");
        let bin = binaries().ok_or_else(missing)?;
        let folder = tempfile::tempdir()?;
        give_to_postgres(folder.path())?;
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        Ok(Self { url, port, bin, folder, durability })
    }

    /// Copies the data of a running server to this one, which has none. [`Self::run`] then starts it
    /// as the standby of that server.
    pub fn follow(&self, primary: &Self) -> io::Result<()> {
        let options = ["-R", "-X", "stream", "-c", "fast", "-d", &primary.url, "-D"];
        run(self.tool("pg_basebackup").args(options).arg(self.data()))
    }

    /// Has a standby accept writes, and waits until it does.
    pub fn promote(&self) -> io::Result<()> {
        run(self.tool("pg_ctl").args(["promote", "-w", "-s", "-D"]).arg(self.data()))
    }

    /// Starts the server's processes on the folder and port that it has, and waits until it accepts
    /// connections.
    pub fn run(&self) -> io::Result<()> {
        let fsync = if self.durability == Durability::Fsync { "on" } else { "off" };
        let options = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1 -c fsync={fsync} -c max_connections=500 \
             -c shared_buffers=512MB",
            self.port,
            self.folder.path().display()
        );
        let mut start = self.tool("pg_ctl");
        start.args(["start", "-w", "-s", "-o", &options, "-l"]);
        let log = self.folder.path().join("log");
        run(start.arg(&log).arg("-D").arg(self.data())).map_err(|error| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            io::Error::other(format!("{error}\n{log}"))
        })
    }

    /// Removes the lock files of processes that were killed. Another process may have an identifier
    /// in them by now, and would be taken for the server.
    pub fn unlock(&self) -> io::Result<()> {
        let socket = self.folder.path().join(format!(".s.PGSQL.{}.lock", self.port));
        fs::remove_file(self.lock_file()).and_then(|()| fs::remove_file(socket))
    }

    /// Stops the server without letting it finish anything, as a crash does.
    pub fn stop(&self) -> io::Result<()> {
        run(self.tool("pg_ctl").args(["stop", "-s", "-m", "immediate", "-D"]).arg(self.data()))
    }

    /// Has the server read its configuration files again.
    pub fn reload(&self) -> io::Result<()> {
        run(self.tool("pg_ctl").args(["reload", "-s", "-D"]).arg(self.data()))
    }

    /// Writes a file into the data folder, readable by the server's user alone.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        let path = self.data().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        give_to_postgres(&path)
    }

    /// The file that exists while the server runs. Its first line is the identifier of the process
    /// that started all others.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.data().join("postmaster.pid")
    }

    /// The folder with the server's files.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of the server's version, which runs as an ordinary user.
    #[must_use]
    pub fn tool(&self, name: &str) -> Command {
        Self::as_owner(&self.bin.join(name))
    }

    /// A shell script, run by `sh` as the ordinary user whose the server's files are, with the server's
    /// programs first in `PATH`. This user has to be able to read the file.
    #[must_use]
    pub fn script(&self, file: &Path) -> Command {
        let mut command = Self::as_owner(Path::new("sh"));
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&usual));
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        command.arg(file);
        command
    }

    /// A program that runs as the ordinary user whose the server's files are.
    fn as_owner(program: &Path) -> Command {
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

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let runs = self.lock_file().exists();
        if runs && let Err(error) = self.stop() {
            eprintln!("failed to stop the PostgreSQL server on port {}: {error}", self.port);
        }
        // A run of all tests leaves some 300,000 files, which took ten minutes to delete where each of them
        // discards its blocks. Nobody has to wait for that.
        let mut remove = Command::new("sh");
        remove.args(["-c", "rm -rf -- \"$0\" &"]).arg(self.folder.path()).process_group(0);
        remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if remove.status().is_ok_and(|status| status.success()) {
            self.folder.disable_cleanup(true);
        }
    }
}

/// Makes the server's user the owner of a path where this process is root: the server refuses to run
/// as root.
pub fn give_to_postgres(path: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return run(Command::new("chown").arg("postgres").arg(path));
    }
    Ok(())
}

/// Runs a program to its end; the error has its name and what it wrote to standard error.
fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|part| part.to_string_lossy()).collect();
    let complaint = String::from_utf8_lossy(&output.stderr);
    let what = format!("`{program} {}` failed: {}", arguments.join(" "), complaint.trim());
    Err(io::Error::other(what))
}
