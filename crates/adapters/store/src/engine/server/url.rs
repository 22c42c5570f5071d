//! Parses the URL of a database: `sqlite://PATH`, or `postgres://…` with the parameters of libpq.

use std::{fmt, str::FromStr};

use tokio_postgres::Config;
use url::form_urlencoded;

use super::{
    Server, Timeouts,
    hosts::is_consistent,
    tls::{InvalidTls, Tls, TlsParameters},
};

/// The location of a database.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// The path of the database file.
    Sqlite(String),
    /// Server, user, database and the security of the connection.
    Postgres(Box<PostgresUrl>),
}

#[derive(Clone)]
pub struct PostgresUrl {
    config: Config,
    tls: Tls,
}

/// Why a database URL is invalid; the error does not repeat the URL.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDatabaseUrl {
    #[error("must begin with sqlite:// or postgres://")]
    Scheme,
    #[error("{0}")]
    Tls(#[from] InvalidTls),
    #[error("is not understood: {0}")]
    Postgres(String),
    #[error("must name a host")]
    NoHost,
    #[error("must have one port for each host, and as many addresses (hostaddr) as names, or none")]
    HostNumbers,
}

impl DatabaseUrl {
    /// Returns the path of the file, if the database is one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl PostgresUrl {
    pub(crate) fn server(&self, timeouts: Timeouts) -> Server {
        Server::new(self.config.clone(), self.tls.clone(), timeouts)
    }
}

impl FromStr for DatabaseUrl {
    type Err = InvalidDatabaseUrl;

    fn from_str(url: &str) -> Result<Self, InvalidDatabaseUrl> {
        if let Some(path) = url.strip_prefix("sqlite://") {
            return Ok(Self::Sqlite(path.to_owned()));
        }
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(InvalidDatabaseUrl::Scheme);
        }
        let (server, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut ours, mut rest) = (TlsParameters::default(), vec![]);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            // libpq does not decode `+` as a space.
            let plain = part.replace('+', "%2B");
            let (name, value) = form_urlencoded::parse(plain.as_bytes()).next().unwrap_or_default();
            if !ours.take(&name, &value)? {
                rest.push(part);
            }
        }
        let rest = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        let config = format!("{server}{rest}").parse::<Config>();
        let config = config.map_err(|error| InvalidDatabaseUrl::Postgres(super::chain(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(InvalidDatabaseUrl::NoHost);
        }
        if !is_consistent(&config) {
            return Err(InvalidDatabaseUrl::HostNumbers);
        }
        let tls = Tls::new(ours, &config)?;
        Ok(Self::Postgres(Box::new(PostgresUrl { config, tls })))
    }
}

/// Omits user and password.
impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{path}"),
            Self::Postgres(url) => {
                write!(f, "postgres://{}", url.server(Timeouts::default()).name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(url: &str) -> String {
        url.parse::<DatabaseUrl>().unwrap_err().to_string()
    }

    #[test]
    fn parameters_of_libpq_are_understood() {
        for url in [
            "sqlite://a.db",
            "postgres://ada@db",
            "postgresql://ada:pw@db-1:5432,db-2/avouch?target_session_attrs=read-write",
            "postgres://ada@db/avouch?sslmode=disable&application_name=a+b",
            "postgres://ada@db/avouch?sslmode=verify-full&channel_binding=require",
            "postgres://ada@db/avouch?sslrootcert=system",
            "postgres://ada@db/avouch?ssl=true&connect_timeout=3",
            "postgres://ada@%2Fvar%2Frun%2Fpostgresql/avouch?sslmode=require",
        ] {
            assert!(url.parse::<DatabaseUrl>().is_ok(), "{url}");
        }
    }

    #[test]
    fn what_is_not_understood_is_told_without_the_password() {
        let cases = [
            ("mysql://ada:geheim@db", "sqlite:// or postgres://"),
            ("postgres://ada:geheim@db?sslmode=on", "sslmode must be"),
            ("postgres://ada:geheim@db?sslmode=verify-ca", "sslrootcert"),
            ("postgres://ada:geheim@db?sslmode=require&sslrootcert=system", "verify-full"),
            ("postgres://ada:geheim@db?sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem"),
            ("postgres://ada:geheim@db?sslcert=/nowhere/a.pem", "sslkey"),
            ("postgres://ada:geheim@db?sslpassword=x", "sslpassword"),
            ("postgres://ada:geheim@db?sslcrl=x", "sslcrl"),
            ("postgres://ada:geheim@db:port/x", "not understood"),
            ("postgres://?user=ada&password=geheim", "host"),
            ("postgres://ada:geheim@db-1:1,db-2:2/x?port=3", "one port"),
            ("postgres://ada:geheim@db-1,db-2/x?hostaddr=10.0.0.1", "hostaddr"),
        ];
        for (url, part) in cases {
            let fault = fault(url);
            assert!(fault.contains(part) && !fault.contains("geheim"), "{url}: {fault}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let url: DatabaseUrl = "postgres://ada:geheim@db:1/x?sslmode=require".parse().unwrap();
        assert_eq!(format!("{url:?}"), "postgres://db:1");
    }
}
