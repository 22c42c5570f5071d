//! The address of a Redis server and the security of its connection.

use std::{fmt, time::Duration};

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo as _, RedisError, TlsCertificates,
};

/// The timeout of [`Redis::ping`].
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A Redis server of a `redis://` or `rediss://` URL; the latter is TLS with verification of the
/// server's certificate.
#[derive(Clone)]
pub struct Redis(Client);

/// The TLS configuration in addition to the URL, each part as PEM (RFC 7468).
#[derive(Clone, Default)]
pub struct RedisTls {
    /// The roots of the server's certificate; `None` for those of the machine.
    pub roots: Option<Vec<u8>>,
    /// The client certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why a Redis configuration is invalid; the error does not repeat the URL.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRedis {
    #[error("redis_url must begin with redis:// or rediss://")]
    Scheme,
    #[error("redis_url must not turn verification off (#insecure)")]
    Insecure,
    #[error("redis_roots and redis_cert need rediss://")]
    Plaintext,
    #[error("redis_url cannot be used: {0}")]
    Redis(#[from] RedisError),
}

impl Redis {
    /// Creates a server without connecting to it.
    ///
    /// # Errors
    /// The URL or the certificates are invalid.
    pub fn new(url: &str, tls: RedisTls) -> Result<Self, InvalidRedis> {
        let is_tls = url.starts_with("rediss://");
        if !is_tls && !url.starts_with("redis://") {
            return Err(InvalidRedis::Scheme);
        }
        let address = url.into_connection_info()?;
        if matches!(address.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
            return Err(InvalidRedis::Insecure);
        }
        if !is_tls {
            let no_tls_files = tls.roots.is_none() && tls.identity.is_none();
            return if no_tls_files {
                Ok(Self(Client::open(address)?))
            } else {
                Err(InvalidRedis::Plaintext)
            };
        }
        let identity = tls.identity;
        let client_tls =
            identity.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let certificates = TlsCertificates { client_tls, root_cert: tls.roots };
        Ok(Self(Client::build_with_tls(address, certificates)?))
    }

    pub(super) fn client(&self) -> Client {
        self.0.clone()
    }

    /// Checks that the server responds within 5 s.
    ///
    /// # Errors
    /// The cause, in one line.
    pub async fn ping(&self) -> Result<(), String> {
        let ping = async {
            let mut connection = self.0.get_multiplexed_async_connection().await?;
            redis::cmd("PING").query_async::<()>(&mut connection).await
        };
        match tokio::time::timeout(PING_TIMEOUT, ping).await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", PING_TIMEOUT.as_secs())),
        }
    }
}

/// Omits user name and password.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.get_connection_info().addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let redis = Redis::new("redis://ada:geheim@cache:1", RedisTls::default()).unwrap();
        assert_eq!(format!("{redis:?}"), "cache:1");
    }

    #[test]
    fn verification_is_not_turned_off() {
        let pem = || Some(b"-----BEGIN CERTIFICATE-----".to_vec());
        let tls = [RedisTls::default(), RedisTls { roots: pem(), identity: None }];
        let [none, roots] = tls;
        for (url, tls, part) in [
            ("http://cache", none.clone(), "rediss://"),
            ("rediss://:geheim@cache/#insecure", none, "verification"),
            ("redis://:geheim@cache", roots, "need rediss://"),
        ] {
            let fault = Redis::new(url, tls).unwrap_err().to_string();
            assert!(fault.contains(part) && !fault.contains("geheim"), "{fault}");
        }
    }
}
