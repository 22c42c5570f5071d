//! A mail server: where it is, how it is spoken to, and what its answers mean.

use std::{fmt, time::Duration};

use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    transport::smtp::{
        AsyncSmtpTransportBuilder, PoolConfig,
        client::{Certificate, Tls, TlsParameters},
    },
};
use ports::notifier::SendError;
use url::Url;

use super::answers::not_taken;

/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(30);
const CONNECTIONS: u32 = 8;
const IDLE: Duration = Duration::from_secs(60);
/// Where mails are handed in (RFC 6409, section 3.1), and where servers take them from others.
const SUBMISSION: u16 = 587;
const RELAY: u16 = 25;

/// What is wrong with the URL of a mail server.
#[derive(Debug, thiserror::Error)]
pub enum BadSmtpUrl {
    #[error("must be smtp://[USER:PASSWORD@]HOST[:PORT] or smtps://…")]
    Form,
    #[error("tls must be required, opportunistic or none, and none only without a password")]
    Tls,
    #[error("{0}")]
    Server(#[from] lettre::transport::smtp::Error),
}

/// Where a mail server is and how it is spoken to; nothing is connected yet.
#[derive(Clone)]
pub struct Server {
    name: String,
    builder: AsyncSmtpTransportBuilder,
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what we sign in with.
        out.write_str(&self.name)
    }
}

impl Server {
    /// `smtp://` begins in the clear and goes on under TLS (STARTTLS, RFC 3207): always where there
    /// is a password, else where the server offers it; `?tls=required|opportunistic|none` says
    /// otherwise. `smtps://` is TLS from the start (RFC 8314). `roots` are believed beside the usual
    /// ones, DER.
    pub fn new(url: &str, roots: &[Vec<u8>]) -> Result<Self, BadSmtpUrl> {
        let url = Url::parse(url).map_err(|_| BadSmtpUrl::Form)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(BadSmtpUrl::Form)?;
        let has_password = url.password().is_some() || !url.username().is_empty();
        let mut parameters = TlsParameters::builder(host.to_owned());
        for root in roots {
            parameters = parameters.add_root_certificate(Certificate::from_der(root.clone())?);
        }
        let asked = url.query_pairs().find(|(name, _)| name == "tls").map(|(_, value)| value);
        let tls = match (url.scheme(), asked.as_deref(), has_password) {
            ("smtps", None, _) => Tls::Wrapper(parameters.build()?),
            ("smtp", Some("required"), _) | ("smtp", None, true) => {
                Tls::Required(parameters.build()?)
            }
            ("smtp", Some("opportunistic") | None, false) => {
                Tls::Opportunistic(parameters.build()?)
            }
            ("smtp", Some("none"), false) => Tls::None,
            ("smtp" | "smtps", Some(_), _) => return Err(BadSmtpUrl::Tls),
            _ => return Err(BadSmtpUrl::Form),
        };
        let mut plain = url.clone();
        plain.set_query(None);
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(plain.as_str())?;
        if url.port().is_none() && url.scheme() == "smtp" {
            builder = builder.port(if has_password { SUBMISSION } else { RELAY });
        }
        let pool = PoolConfig::new().max_size(CONNECTIONS).idle_timeout(IDLE);
        let builder = builder.tls(tls).timeout(Some(COMMAND)).pool_config(pool);
        Ok(Self { name: host.to_owned(), builder })
    }

    /// Whether the server answers, by a connection of its own on which nothing is sent. Call it on
    /// a runtime.
    ///
    /// # Errors
    /// In one line what went wrong.
    pub async fn check(&self) -> Result<(), String> {
        let transport = self.builder.clone().build::<Tokio1Executor>();
        let answered = transport.test_connection().await.map_err(|error| {
            let (mut line, mut cause) = (error.to_string(), std::error::Error::source(&error));
            while let Some(error) = cause {
                line = format!("{line}: {error}");
                cause = error.source();
            }
            line
        })?;
        if answered { Ok(()) } else { Err("it does not take commands".into()) }
    }
}

/// Connections to a mail server, kept for the next mail.
pub(super) struct Smtp(AsyncSmtpTransport<Tokio1Executor>);

impl Smtp {
    /// Call it on a runtime, which looks after the connections.
    pub(super) fn new(server: Server) -> Self {
        Self(server.builder.build())
    }

    pub(super) async fn send(&self, message: Message) -> Result<(), SendError> {
        self.0.send(message).await.map(drop).map_err(|error| not_taken(&error))
    }
}
