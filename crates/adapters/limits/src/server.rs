//! A Redis server: where it is, and how the connection is secured.

use std::{fmt, time::Duration};

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo as _, RedisError, TlsCertificates,
};

/// How long [`Redis::ping`] waits.
const PING: Duration = Duration::from_secs(5);

/// A server that a `redis://` or `rediss://` URL names; the latter is TLS with a certificate that
/// is verified.
#[derive(Clone)]
pub struct Redis(Client);

/// What TLS takes beside the URL, each as PEM (RFC 7468).
#[derive(Clone, Default)]
pub struct RedisTls {
    /// The roots that the server's certificate may come from; `None`: those of the machine.
    pub roots: Option<Vec<u8>>,
    /// Certificate and key of ours.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why a text names no server; it does not repeat the text.
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
    /// A server, which is not connected to yet.
    ///
    /// # Errors
    /// The URL or the certificates cannot be used.
    pub fn new(url: &str, tls: RedisTls) -> Result<Self, InvalidRedis> {
        let secured = url.starts_with("rediss://");
        if !secured && !url.starts_with("redis://") {
            return Err(InvalidRedis::Scheme);
        }
        let address = url.into_connection_info()?;
        if matches!(address.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
            return Err(InvalidRedis::Insecure);
        }
        if !secured {
            let plain = tls.roots.is_none() && tls.identity.is_none();
            return if plain {
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

    /// Whether the server answers, within 5 s.
    ///
    /// # Errors
    /// In one line what went wrong.
    pub async fn ping(&self) -> Result<(), String> {
        let asked = async {
            let mut connection = self.0.get_multiplexed_async_connection().await?;
            redis::cmd("PING").query_async::<()>(&mut connection).await
        };
        match tokio::time::timeout(PING, asked).await {
            Ok(answered) => answered.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", PING.as_secs())),
        }
    }
}

/// Without user and password.
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
