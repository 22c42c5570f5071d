//! A PostgreSQL server: its addresses, the security of its connections, and the timeouts.

mod hosts;
mod pem;
mod tls;
mod url;
mod verifier;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use ::diesel::ConnectionError;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use tokio_postgres::{Client, Config, Connection, Socket, error::SqlState, tls::MakeTlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::{hosts::DatabaseHost, tls::Tls};
pub use self::{
    tls::{InvalidTls, SslMode},
    url::{DatabaseUrl, InvalidDatabaseUrl},
};

/// The timeouts of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection of the pool, including the time to open one.
    pub pool: Duration,
    /// For a connection to one host: TCP, TLS and authentication together.
    pub connect: Duration,
    /// For one statement, after which PostgreSQL ends it (`statement_timeout`).
    pub statement: Duration,
}

/// The additional time after [`Timeouts::statement`] until the connection of a statement or
/// transaction is closed: PostgreSQL can end it first, which preserves the connection.
const GRACE: Duration = Duration::from_secs(5);

impl Default for Timeouts {
    fn default() -> Self {
        let [pool, connect, statement] = [10, 5, 30].map(Duration::from_secs);
        Self { pool, connect, statement }
    }
}

impl Timeouts {
    /// Returns the time after which the client aborts a statement or transaction, whatever the
    /// server does.
    pub(crate) fn answer(&self) -> Duration {
        self.statement + GRACE
    }
}

/// A server, or several of which the first one that accepts is used.
pub(crate) struct Server {
    hosts: Vec<DatabaseHost>,
    /// The number of the host that accepted the last connection. It is asked first, so that
    /// connections do not go back to a primary server that returns after its standby took over.
    accepting: AtomicUsize,
    tls: Tls,
    timeouts: Timeouts,
}

/// The transport of a connection.
type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// A connection, and what drives it.
type Opened = (Client, Connection<Socket, Stream>);

impl Server {
    fn new(config: Config, tls: Tls, timeouts: Timeouts) -> Self {
        let mut config = config;
        if config.get_connect_timeout().is_none() {
            // As long as a host has in all.
            config.connect_timeout(timeouts.connect);
        }
        let hosts = DatabaseHost::all(&config);
        Self { hosts, accepting: AtomicUsize::new(0), tls, timeouts }
    }

    /// Returns the hosts for messages, without users and passwords.
    pub(crate) fn name(&self) -> String {
        let names = self.hosts.iter().map(|host| host.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns why an attacker on the network path could read the traffic or impersonate the
    /// server, if so.
    pub(crate) fn weakness(&self) -> Option<&'static str> {
        let near = self.hosts.iter().all(DatabaseHost::is_local);
        if near { None } else { self.tls.weakness() }
    }

    /// Returns the time after which an answer is not waited for any more.
    pub(crate) fn answer(&self) -> Duration {
        self.timeouts.answer()
    }

    /// Opens a connection, on which PostgreSQL ends each statement after [`Timeouts::statement`], and
    /// compiles none: on a large table the deletion of no rows took 67 ms, which were those of the compiler.
    ///
    /// # Errors
    /// The server and the cause, in one line.
    pub(crate) async fn connect(&self) -> Result<AsyncPgConnection, ConnectionError> {
        let (client, connection) = self.open().await.map_err(ConnectionError::BadConnection)?;
        let name = self.name();
        let prepared = self.bounded(&name, async {
            let opened = AsyncPgConnection::try_from_client_and_connection(client, connection);
            let mut opened = opened.await.map_err(|error| chain(&error))?;
            let settings = format!(
                "SET statement_timeout = {}; SET jit = off",
                self.timeouts.statement.as_millis()
            );
            opened.batch_execute(&settings).await.map_err(|error| chain(&error))?;
            Ok(opened)
        });
        prepared.await.map_err(ConnectionError::BadConnection)
    }

    /// Opens a connection for migrations, which set the timeouts of their statements themselves. It is
    /// driven by a task of its own, and closed when the client is dropped.
    ///
    /// # Errors
    /// The server and the cause, in one line.
    pub(crate) async fn client(&self) -> Result<Client, String> {
        let (client, connection) = self.open().await?;
        // An error of the connection is that of the statement which it fails.
        tokio::spawn(async move { connection.await.map_err(drop) });
        Ok(client)
    }

    /// Opens a connection to the host that accepted the last one, otherwise to the next one that
    /// accepts. Each host has its own time, so that one which hangs keeps nobody from the others.
    async fn open(&self) -> Result<Opened, String> {
        let first = self.accepting.load(Ordering::Relaxed);
        let turns = self.hosts.iter().enumerate().cycle().skip(first).take(self.hosts.len());
        let mut failures: Vec<String> = vec![];
        for (number, host) in turns {
            // On the heap, since whoever waits for a connection would hold it otherwise.
            match Box::pin(self.bounded(&host.name, self.open_at(&host.config))).await {
                Ok(opened) if self.is_accepting(first, number) => {
                    if number != first {
                        tracing::warn!(
                            "PostgreSQL is used at {} from now on ({})",
                            host.name,
                            failures.join("; ")
                        );
                    }
                    return Ok(opened);
                }
                Ok(_) => failures.push(format!("{}: another host is used now", host.name)),
                Err(failure) => failures.push(failure),
            }
        }
        Err(failures.join("; "))
    }

    /// Takes over that a host has accepted, unless another one was found meanwhile: a primary server that
    /// answers late, after its standby took over, is not gone back to.
    fn is_accepting(&self, first: usize, number: usize) -> bool {
        let order = Ordering::Relaxed;
        let changed = self.accepting.compare_exchange(first, number, order, order);
        changed.is_ok() || changed == Err(number)
    }

    /// Adds the server to an error, and bounds the time.
    async fn bounded<T>(
        &self,
        server: &str,
        opening: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let bound = self.timeouts.connect;
        let opened = tokio::time::timeout(bound, opening).await;
        opened
            .unwrap_or_else(|_| Err(format!("no answer within {} s", bound.as_secs())))
            .map_err(|error| format!("{server}: {error}"))
    }

    async fn open_at(&self, host: &Config) -> Result<Opened, String> {
        // Files are read for each connection, so a renewed certificate needs no restart.
        let tls = self.tls.connector().map_err(|error| chain(&error))?;
        let mut modes = self.tls.attempts().iter();
        loop {
            let mode = modes.next().ok_or("there is no way to connect")?;
            let mut config = host.clone();
            config.ssl_mode(*mode);
            match config.connect(tls.clone()).await {
                Ok(opened) => return Ok(opened),
                Err(error) if modes.len() > 0 && is_about_tls(&error) => (),
                Err(error) => return Err(chain(&error)),
            }
        }
    }
}

/// Returns whether the connection may succeed with TLS after failing without, or the other way
/// round: the handshake failed, or the server's access list refuses this kind of connection.
fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    let refused = error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    refused || error.to_string().contains("TLS")
}

fn chain(error: &dyn std::error::Error) -> String {
    let (mut line, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
