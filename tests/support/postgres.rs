//! A PostgreSQL server of a test's own: it crashes, hangs and changes to TLS when the test asks for it.

use std::{
    fs,
    ops::Deref,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use postgres_server::{Durability, PostgresServer};
use testkit::certificates::Certified;

use crate::{database::Database, eventually, free_port};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server; stopped when it is dropped.
#[derive(Debug)]
pub struct OwnPostgres(PostgresServer);

impl Deref for OwnPostgres {
    type Target = PostgresServer;

    fn deref(&self) -> &PostgresServer {
        &self.0
    }
}

impl OwnPostgres {
    /// Starts a server that keeps what was committed over a crash.
    #[must_use]
    pub fn start() -> Self {
        let server = PostgresServer::start(free_port(), Durability::Fsync);
        Self(server.expect("a PostgreSQL server"))
    }

    /// Prepares a server without data, which a restore writes and [`PostgresServer::run`] starts.
    #[must_use]
    pub fn without_data() -> Self {
        let server = PostgresServer::without_data(free_port(), Durability::Fsync);
        Self(server.expect("a PostgreSQL server"))
    }

    /// Stops the server without letting it finish anything, and starts it again.
    pub fn crash(&self) {
        self.0.stop().expect("the server stops");
        self.0.run().expect("the server starts");
    }

    /// Starts a standby of a server, for which each commit of that server waits from now on.
    pub async fn standby_of(primary: &Self) -> Self {
        let standby = Self::without_data();
        standby.follow(primary).expect("a base backup");
        standby.run().expect("the standby starts");
        let database = Database { url: primary.url.clone() };
        // Not earlier: the standby does not get the setting, and waits for nobody once promoted.
        database.execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        database.execute("SELECT pg_reload_conf()").await;
        let state = "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication";
        eventually("commits to wait for the standby", TIMEOUT, async || {
            (database.value(state).await == "sync").then_some(())
        })
        .await;
        standby
    }

    /// Kills the server's processes (SIGKILL), and waits until they have ended.
    pub async fn kill(&self) {
        let processes = self.processes();
        signal("-KILL", &processes);
        eventually("the server's processes to end", TIMEOUT, async || {
            processes.iter().all(|id| has_ended(*id)).then_some(())
        })
        .await;
        self.0.unlock().expect("the lock files of the server");
    }

    /// Accepts connections from now on as an access list (`pg_hba.conf`) says, over TLS with this
    /// certificate; `authority` (PEM) issues the clients' certificates.
    pub fn secure(&self, certified: &Certified, authority: &str, access: &str) {
        let files = [
            ("server.crt", certified.certificate.as_str()),
            ("server.key", &certified.key),
            ("root.crt", authority),
            ("pg_hba.conf", access),
            ("postgresql.auto.conf", "ssl = on\nssl_ca_file = 'root.crt'\n"),
        ];
        for (name, text) in files {
            self.0.write(name, text).expect("a file of the server");
        }
        self.0.reload().expect("the server reloads");
    }

    /// Suspends the server's processes (SIGSTOP): it answers nothing, and its connections stay open.
    pub fn pause(&self) {
        signal("-STOP", &self.processes());
    }

    /// Resumes the suspended processes (SIGCONT).
    pub fn resume(&self) {
        signal("-CONT", &self.processes());
    }

    /// The ids of the server's processes, the postmaster before its children.
    fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.lock_file()).unwrap_or_default();
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

    /// Runs a shell script as the server's user, and returns what it printed; panics if it fails.
    pub fn run_script(&self, file: &Path, arguments: &[&str]) -> String {
        let mut script = self.script(file);
        script.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string());
        let output = script.env("PGUSER", "postgres").args(arguments).output().expect("sh runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaint}", file.display());
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Everything that `pg_dump` writes of the database.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let mut dump = self.tool("pg_dump");
        let output = dump.arg(&self.url).stdout(Stdio::piped()).output().expect("pg_dump runs");
        assert!(output.status.success(), "pg_dump: {}", output.status);
        output.stdout
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        // Suspended processes would not stop.
        self.resume();
    }
}

/// Returns whether a process has ended, also where nobody has asked for its status yet.
fn has_ended(id: u32) -> bool {
    fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default().is_empty()
}

fn signal(name: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    let _ = Command::new("kill").arg(name).args(processes).stderr(Stdio::null()).status();
}
