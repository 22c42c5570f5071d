//! Connections of the service to PostgreSQL and Redis: over TLS only, with valid and invalid
//! certificates, and to servers that hang.

mod config_check;
mod doctor;
mod postgres_tls;
mod redis_tls;
mod tls_throughput;
mod unresponsive_servers;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use acceptance::{postgres::OwnPostgres, service::binary};
use tempfile::TempDir;
use testkit::certificates::Authority;

/// Everyone connects over TLS with a password; the role `guest` of the tests connects without TLS.
const ACCESS: &str = "hostnossl all guest 127.0.0.1/32 trust\n\
                      hostssl all certified 127.0.0.1/32 cert\n\
                      hostssl all all 127.0.0.1/32 scram-sha-256\n";

/// A PostgreSQL server that accepts the service's connections over TLS only, with the authority of
/// its certificate.
struct TlsServer {
    postgres: OwnPostgres,
    authority: Authority,
    folder: TempDir,
}

impl TlsServer {
    /// Starts a server with a certificate for `localhost`, and none for its IP address.
    async fn start() -> Self {
        let (postgres, authority) = (OwnPostgres::start(), Authority::new("ours"));
        let (client, connection) =
            tokio_postgres::connect(&postgres.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let roles = "ALTER ROLE postgres PASSWORD 'geheim'; CREATE ROLE guest SUPERUSER LOGIN; \
                     CREATE ROLE certified SUPERUSER LOGIN";
        client.batch_execute(roles).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ours.pem"), authority.pem()).unwrap();
        fs::write(folder.path().join("others.pem"), Authority::new("others").pem()).unwrap();
        postgres.secure(&authority.valid(&["localhost"]), &authority.pem(), ACCESS);
        Self { postgres, authority, folder }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn url(&self, user: &str, host: &str, parameters: &str) -> String {
        let port = self.postgres.port;
        format!("postgres://{user}@{host}:{port}/postgres?{parameters}")
    }

    /// The URL for the service, with full verification.
    fn verified(&self) -> String {
        let parameters = format!("sslmode=verify-full&sslrootcert={}", self.file("ours.pem"));
        self.url("postgres:geheim", "localhost", &parameters)
    }

    /// The URL for the tests, without TLS.
    fn guest(&self) -> String {
        format!("postgres://guest@127.0.0.1:{}/postgres", self.postgres.port)
    }

    async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) =
            tokio_postgres::connect(&self.guest(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs the program with a database and further settings.
    fn run(&self, url: &str, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
        Command::new(binary())
            .env("AVOUCH_DATA_DIR", self.data())
            .env("AVOUCH_DATABASE_URL", url)
            .envs(settings.iter().copied())
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Connects, migrates and inserts a team; the error is what the command printed.
    fn team(&self, url: &str, settings: &[(&str, &str)]) -> Result<(), String> {
        let made = self.run(url, settings, &["admin", "create-team", "Lender"]);
        let complaint = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(!complaint.contains("geheim"), "{complaint}");
        if made.status.success() { Ok(()) } else { Err(complaint) }
    }
}

/// Returns the lines of a log that contain a text.
fn lines(log: &std::path::Path, text: &str) -> Vec<String> {
    let log = fs::read_to_string(log).unwrap_or_default();
    log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}
